import CDBus

/// A message of the bus; belongs to the bus's thread.
final class BusMessage {
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { self.pointer = pointer }

  deinit { dbus_message_unref(pointer) }

  /// A call of a method.
  static func call(_ service: String, _ path: String, _ interface: String, _ method: String) -> BusMessage? {
    dbus_message_new_method_call(service, path, interface, method).map { BusMessage(owning: $0) }
  }

  static func signal(_ path: String, _ interface: String, _ name: String) -> BusMessage? {
    dbus_message_new_signal(path, interface, name).map { BusMessage(owning: $0) }
  }

  /// Appends arguments.
  func append(_ body: (inout BusWriter) -> Void) {
    var iterator = DBusMessageIter()
    dbus_message_iter_init_append(pointer, &iterator)
    var writer = BusWriter(iterator: iterator)
    body(&writer)
  }
}

/// Types by their letter.
private enum BusType {
  static let string = Int32(SHIM_STRING)
  static let uint32 = Int32(SHIM_UINT32)
  static let int32 = Int32(SHIM_INT32)
  static let bool = Int32(SHIM_BOOL)
  static let byte = Int32(SHIM_BYTE)
  static let int64 = Int32(SHIM_INT64)
  static let array = Int32(SHIM_ARRAY)
  static let variant = Int32(SHIM_VARIANT)
  static let entry = Int32(SHIM_ENTRY)
}

/// A value in a variant.
enum BusValue: Sendable, Hashable {
  case bool(Bool)
  case byte(UInt8)
  case int64(Int64)
  case string(String)

  var signature: String {
    switch self {
    case .bool: "b"
    case .byte: "y"
    case .int64: "x"
    case .string: "s"
    }
  }
}

/// Appends values to a message.
struct BusWriter {
  var iterator: DBusMessageIter

  mutating func append(_ text: String) {
    // The bus knows no text with a zero in it.
    let clean = text.utf8.contains(0) ? String(text.filter { $0 != "\0" }) : text
    clean.withCString { start in
      var start: UnsafePointer<CChar>? = start
      _ = dbus_message_iter_append_basic(&iterator, BusType.string, &start)
    }
  }

  mutating func append(_ number: UInt32) {
    var number = number
    dbus_message_iter_append_basic(&iterator, BusType.uint32, &number)
  }

  mutating func append(_ number: Int32) {
    var number = number
    dbus_message_iter_append_basic(&iterator, BusType.int32, &number)
  }

  mutating func append(_ value: BusValue) {
    switch value {
    case .string(let text): append(text)
    case .bool(let flag):
      var number: dbus_bool_t = flag ? 1 : 0
      dbus_message_iter_append_basic(&iterator, BusType.bool, &number)
    case .byte(var byte): dbus_message_iter_append_basic(&iterator, BusType.byte, &byte)
    case .int64(var number): dbus_message_iter_append_basic(&iterator, BusType.int64, &number)
    }
  }

  mutating func append(list: [String]) {
    inside(BusType.array, "s") { inner in
      for text in list { inner.append(text) }
    }
  }

  /// As `a{sv}`.
  mutating func append(table: [(String, BusValue)]) {
    inside(BusType.array, "{sv}") { inner in
      for (name, value) in table {
        inner.inside(BusType.entry, nil) { entry in
          entry.append(name)
          entry.inside(BusType.variant, value.signature) { $0.append(value) }
        }
      }
    }
  }

  private mutating func inside(_ type: Int32, _ signature: String?, _ body: (inout BusWriter) -> Void) {
    var inner = BusWriter(iterator: DBusMessageIter())
    guard dbus_message_iter_open_container(&iterator, type, signature, &inner.iterator) != 0 else { return }
    body(&inner)
    dbus_message_iter_close_container(&iterator, &inner.iterator)
  }
}

/// Reads a message's arguments in order.
///
/// `@unchecked Sendable`: it stays on the bus's thread; marked since it goes through closures that may be sent.
struct BusReader: @unchecked Sendable {
  private let message: BusMessage
  private var iterator = DBusMessageIter()
  private var isAtEnd: Bool

  init(_ message: BusMessage) {
    self.message = message
    isAtEnd = dbus_message_iter_init(message.pointer, &iterator) == 0
  }

  /// The name of a signal.
  var member: String { dbus_message_get_member(message.pointer).map { String(cString: $0) } ?? "" }

  mutating func uint32() -> UInt32? {
    guard !isAtEnd, dbus_message_iter_get_arg_type(&iterator) == BusType.uint32 else { return nil }
    var number: UInt32 = 0
    dbus_message_iter_get_basic(&iterator, &number)
    isAtEnd = dbus_message_iter_next(&iterator) == 0
    return number
  }

  mutating func string() -> String? {
    guard !isAtEnd, dbus_message_iter_get_arg_type(&iterator) == BusType.string else { return nil }
    var text: UnsafePointer<CChar>?
    dbus_message_iter_get_basic(&iterator, &text)
    let copy = text.map { String(cString: $0) }
    isAtEnd = dbus_message_iter_next(&iterator) == 0
    return copy
  }

  mutating func strings() -> [String]? {
    guard !isAtEnd, dbus_message_iter_get_arg_type(&iterator) == BusType.array else { return nil }
    var inner = DBusMessageIter()
    dbus_message_iter_recurse(&iterator, &inner)
    var list: [String] = []
    while dbus_message_iter_get_arg_type(&inner) == BusType.string {
      var text: UnsafePointer<CChar>?
      dbus_message_iter_get_basic(&inner, &text)
      if let text { list.append(String(cString: text)) }
      if dbus_message_iter_next(&inner) == 0 { break }
    }
    isAtEnd = dbus_message_iter_next(&iterator) == 0
    return list
  }
}
