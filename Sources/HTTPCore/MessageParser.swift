import CHTTPParser

/// The C parser for one direction of one connection, and the checks that it leaves out.
///
/// Bytes in; stops at the end of each message. Owns the C struct, whose callbacks find this object again.
final class MessageParser {
  enum Kind { case request, response }

  /// What one call of ``feed(_:)`` came to.
  struct Outcome {
    /// Bytes used up.
    ///
    /// Fewer than given only at a message's end or a fault.
    var consumed = 0
    var isComplete = false
    var fault: HTTPFault?
  }

  private let kind: Kind
  private let limits: HTTPLimits
  private let parser: UnsafeMutablePointer<http_parser>
  private var settings = http_parser_settings()

  // The message in the making.
  private(set) var isHeadDone = false
  private(set) var target: [UInt8] = []
  private(set) var fields = HTTPFields()
  private(set) var body: [UInt8] = []
  /// A response to HEAD has a length and no body.
  var expectsNoBody = false
  private var name: [UInt8] = []
  private var value: [UInt8] = []
  private var fault: HTTPFault?
  private var isComplete = false
  private var isChunked = false
  private var chunkRest: UInt64 = 0
  private var headBytes = 0
  private var check = FramingCheck()

  // The input of the call in progress; base and how far the check has come.
  private var base: UnsafeRawPointer?
  private var input = UnsafeRawBufferPointer(start: nil, count: 0)
  private var checked = 0

  init(_ kind: Kind, limits: HTTPLimits) {
    self.kind = kind
    self.limits = limits
    parser = .allocate(capacity: 1)
    parser.initialize(to: http_parser())
    http_parser_init(parser, kind == .request ? HTTP_REQUEST : HTTP_RESPONSE)
    http_parser_settings_init(&settings)
    settings.on_url = onTarget
    settings.on_header_field = onFieldName
    settings.on_header_value = onFieldValue
    settings.on_headers_complete = onHeadersComplete
    settings.on_chunk_header = onChunkHeader
    settings.on_body = onBody
    settings.on_message_complete = onMessageComplete
    parser.pointee.data = Unmanaged.passUnretained(self).toOpaque()
  }

  deinit {
    parser.deinitialize(count: 1)
    parser.deallocate()
  }

  var method: String {
    parser.pointee.method == HTTP_POST.rawValue ? "POST" : methodText
  }
  private var methodText: String {
    String(cString: http_method_str(http_method(UInt32(parser.pointee.method))))
  }
  var status: Int { Int(parser.pointee.status_code) }
  var minorVersion: Int { Int(parser.pointee.http_minor) }

  /// Takes bytes up to the end of the message.
  func feed(_ bytes: UnsafeRawBufferPointer) -> Outcome {
    var outcome = Outcome()
    while outcome.consumed < bytes.count && !outcome.isComplete {
      let rest = bytes.count - outcome.consumed
      let room = isHeadDone ? rest : limits.headBytesMax - headBytes
      guard room > 0 else {
        outcome.fault = fields.isEmpty && name.isEmpty ? .targetTooLong : .headTooLarge
        return outcome
      }
      let slice = UnsafeRawBufferPointer(
        rebasing: bytes[outcome.consumed..<outcome.consumed + min(room, rest)])
      let wasHead = !isHeadDone
      let used = execute(slice)
      if wasHead { headBytes += used }
      outcome.consumed += used
      outcome.isComplete = isComplete
      if let fault {
        outcome.fault = fault
        return outcome
      }
    }
    return outcome
  }

  /// Begins the next message.
  func reset() {
    isHeadDone = false
    isComplete = false
    isChunked = false
    target.removeAll(keepingCapacity: true)
    fields = HTTPFields()
    body = []
    name.removeAll(keepingCapacity: true)
    value.removeAll(keepingCapacity: true)
    headBytes = 0
    check.reset()
    http_parser_pause(parser, 0)
  }

  /// The peer will send no more.
  ///
  /// - Returns: Whether a message that only the end of the connection ends is complete by it (a response without
  ///   length, RFC 9112 §6.3 item 8).
  func finish() -> Bool {
    var nothing: CChar = 0
    _ = http_parser_execute(parser, &settings, &nothing, 0)
    return isComplete && fault == nil
  }

  private func execute(_ slice: UnsafeRawBufferPointer) -> Int {
    base = slice.baseAddress
    input = slice
    checked = 0
    defer {
      base = nil
      input = UnsafeRawBufferPointer(start: nil, count: 0)
    }
    let used = min(
      slice.count,
      http_parser_execute(
        parser, &settings, slice.baseAddress?.assumingMemoryBound(to: CChar.self), slice.count))
    // The check goes first: whichever way the input was cut, the first fault is the one that is told.
    if !checkFraming(upTo: used) { return used }
    let code = http_errno(UInt32(parser.pointee.http_errno))
    if code != HPE_OK && code != HPE_PAUSED && fault == nil {
      fault = code == HPE_HEADER_OVERFLOW ? .headTooLarge : .malformed
    }
    if fault == nil && used < slice.count && !isComplete { fault = .malformed }
    return used
  }

  /// Checks the bytes between the last body part and `end`.
  private func checkFraming(upTo end: Int) -> Bool {
    guard end > checked else { return true }
    let framing = input[checked..<end]
    checked = end
    guard check.isFine(framing) else {
      fault = .malformed
      return false
    }
    if check.bytesBehindHead > limits.bodyBytesMax { fault = .bodyTooLarge }
    return fault == nil
  }

  // MARK: What the C parser calls

  fileprivate func gotTarget(_ bytes: UnsafeRawBufferPointer) -> Int32 {
    // The C parser lets bytes above ASCII pass.
    guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return refuse(.malformed) }
    target.append(contentsOf: bytes)
    return 0
  }

  fileprivate func gotFieldName(_ bytes: UnsafeRawBufferPointer) -> Int32 {
    guard bytes.allSatisfy(Self.isTokenByte) else { return refuse(.malformed) }
    if isHeadDone { return 0 }  // A trailer: checked, and not kept.
    if !value.isEmpty || name.last == UInt8(ascii: ":") { endField() }
    name.append(contentsOf: bytes)
    return 0
  }

  fileprivate func gotFieldValue(_ bytes: UnsafeRawBufferPointer) -> Int32 {
    if isHeadDone { return 0 }
    // Marks that the name is whole, for a value that is empty.
    if name.last != UInt8(ascii: ":") { name.append(UInt8(ascii: ":")) }
    value.append(contentsOf: bytes)
    return 0
  }

  private func endField() {
    guard !name.isEmpty else { return }
    if name.last == UInt8(ascii: ":") { name.removeLast() }
    name.withUnsafeBytes { name in
      value.withUnsafeBytes { fields.append(name: name, value: $0) }
    }
    name.removeAll(keepingCapacity: true)
    value.removeAll(keepingCapacity: true)
  }

  fileprivate func gotHead() -> Int32 {
    endField()
    guard parser.pointee.http_major == 1, parser.pointee.http_minor <= 1 else {
      return refuse(.versionUnknown)
    }
    if fields.count > limits.fieldsMax { return refuse(.headTooLarge) }
    if let fault = BodyLength.fault(fields, minorVersion: minorVersion, isRequest: kind == .request) {
      return refuse(fault)
    }
    isChunked = fields.has("transfer-encoding")
    if let length = fields["content-length"].flatMap({ Int($0) }), length > limits.bodyBytesMax,
      !expectsNoBody
    {
      return refuse(.bodyTooLarge)
    }
    if kind == .request {
      let hosts = fields.count(of: "host")
      // RFC 9112 §3.2.
      guard hosts <= 1, hosts == 1 || minorVersion == 0 else { return refuse(.malformed) }
      guard parser.pointee.method != HTTP_CONNECT.rawValue else { return refuse(.malformed) }
      if fields.has("expect"), let expect = fields["expect"], expect.lowercased() != "100-continue" {
        return refuse(.expectationUnknown)
      }
    }
    isHeadDone = true
    // 1 tells the C parser to expect no body.
    return expectsNoBody ? 1 : 0
  }

  fileprivate func gotChunkHeader() -> Int32 {
    chunkRest = parser.pointee.content_length
    return 0
  }

  fileprivate func gotBody(_ bytes: UnsafeRawBufferPointer) -> Int32 {
    if let base, let start = bytes.baseAddress {
      // proof: the C parser hands out parts of the input that it was given.
      let offset = start - base
      guard checkFraming(upTo: offset) else { return -1 }
      checked = offset + bytes.count
      if isChunked {
        chunkRest -= min(chunkRest, UInt64(bytes.count))
        check.skippedBody(endsChunk: chunkRest == 0)
      } else {
        check.skippedBody(endsChunk: false)
      }
    }
    guard bytes.count <= limits.bodyBytesMax - body.count else { return refuse(.bodyTooLarge) }
    body.append(contentsOf: bytes)
    return 0
  }

  fileprivate func gotEnd() -> Int32 {
    isComplete = true
    http_parser_pause(parser, 1)
    return 0
  }

  private func refuse(_ fault: HTTPFault) -> Int32 {
    if self.fault == nil { self.fault = fault }
    return -1
  }

  /// `tchar` of RFC 9110 §5.6.2.
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    case UInt8(ascii: "-"): true
    default: "!#$%&'*+.^_`|~".utf8.contains(byte)
    }
  }
}

/// How long a body is: the one question that must have one answer.
enum BodyLength {
  /// The fault of header fields that leave a doubt.
  ///
  /// RFC 9112 §6.1 to 6.3.
  static func fault(_ fields: HTTPFields, minorVersion: Int, isRequest: Bool) -> HTTPFault? {
    guard fields.count(of: "content-length") + fields.count(of: "transfer-encoding") <= 1 else {
      return .malformed
    }
    let isNumber = fields.withValue("content-length") { length in
      (1...15).contains(length.count) && length.allSatisfy { (48...57).contains($0) }
    }
    guard isNumber != false else { return .malformed }
    if fields.has("transfer-encoding"), let encoding = fields["transfer-encoding"] {
      guard encoding.lowercased() == "chunked", minorVersion == 1 || !isRequest else { return .malformed }
    }
    return nil
  }
}

// MARK: C callbacks

private func object(_ parser: UnsafeMutablePointer<http_parser>?) -> Unmanaged<MessageParser>? {
  parser?.pointee.data.map { Unmanaged<MessageParser>.fromOpaque($0) }
}

private func onTarget(
  _ parser: UnsafeMutablePointer<http_parser>?, _ at: UnsafePointer<CChar>?, _ count: Int
) -> Int32 {
  object(parser)?._withUnsafeGuaranteedRef { $0.gotTarget(.init(start: at, count: count)) } ?? -1
}

private func onFieldName(
  _ parser: UnsafeMutablePointer<http_parser>?, _ at: UnsafePointer<CChar>?, _ count: Int
) -> Int32 {
  object(parser)?._withUnsafeGuaranteedRef { $0.gotFieldName(.init(start: at, count: count)) } ?? -1
}

private func onFieldValue(
  _ parser: UnsafeMutablePointer<http_parser>?, _ at: UnsafePointer<CChar>?, _ count: Int
) -> Int32 {
  object(parser)?._withUnsafeGuaranteedRef { $0.gotFieldValue(.init(start: at, count: count)) } ?? -1
}

private func onHeadersComplete(_ parser: UnsafeMutablePointer<http_parser>?) -> Int32 {
  object(parser)?._withUnsafeGuaranteedRef { $0.gotHead() } ?? -1
}

private func onChunkHeader(_ parser: UnsafeMutablePointer<http_parser>?) -> Int32 {
  object(parser)?._withUnsafeGuaranteedRef { $0.gotChunkHeader() } ?? -1
}

private func onBody(
  _ parser: UnsafeMutablePointer<http_parser>?, _ at: UnsafePointer<CChar>?, _ count: Int
) -> Int32 {
  object(parser)?._withUnsafeGuaranteedRef { $0.gotBody(.init(start: at, count: count)) } ?? -1
}

private func onMessageComplete(_ parser: UnsafeMutablePointer<http_parser>?) -> Int32 {
  object(parser)?._withUnsafeGuaranteedRef { $0.gotEnd() } ?? -1
}
