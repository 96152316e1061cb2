import CDBus
import Glibc
import Seams

/// Why the desktop cannot be reached.
public struct DesktopFault: Error, Sendable, Hashable, CustomStringConvertible {
  /// For people.
  public var description: String

  init(_ description: String) { self.description = description }
}

/// A connection to a message bus, with a thread that reads and writes.
///
/// Nothing here blocks its callers: what is to be sent is handed to the thread, answers come back on it.
///
/// `@unchecked Sendable`: `connection`, `replies` and `deadlines` are touched on the thread alone, `queue` is guarded.
final class Bus: @unchecked Sendable {
  /// Called on the thread, with a message that lives for the call.
  typealias Reply = @Sendable (Result<BusReader, DesktopFault>) -> Void

  private let connection: OpaquePointer
  private let wake: Int32
  private let queue = Guarded<(jobs: [@Sendable (Bus) -> Void], isStopped: Bool)>(([], false))
  private var replies: [UInt32: (deadline: Moment, reply: Reply)] = [:]
  private let received: @Sendable (BusReader, Bus) -> Void
  private let time = SystemTime()

  /// How long a call may take.
  static let patience = Duration.seconds(10)

  /// - Parameters:
  ///   - address: Of the bus; nil for the session's.
  ///   - received: Called on the bus's thread for every signal.
  init(
    address: String?, received: @escaping @Sendable (BusReader, Bus) -> Void
  ) throws(DesktopFault) {
    var error = DBusError()
    dbus_error_init(&error)
    defer { dbus_error_free(&error) }
    dbus_threads_init_default()
    let opened: OpaquePointer?
    if let address {
      opened = dbus_connection_open_private(address, &error)
      if let opened, dbus_bus_register(opened, &error) == 0 {
        dbus_connection_close(opened)
        dbus_connection_unref(opened)
        throw DesktopFault(Self.text(error))
      }
    } else {
      opened = dbus_bus_get_private(DBUS_BUS_SESSION, &error)
    }
    guard let opened else { throw DesktopFault(Self.text(error)) }
    dbus_connection_set_exit_on_disconnect(opened, 0)
    connection = opened
    wake = shim_eventfd()
    self.received = received
    guard wake >= 0 else {
      dbus_connection_close(opened)
      dbus_connection_unref(opened)
      throw DesktopFault("no event descriptor")
    }
    var thread = pthread_t()
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, 256 << 10)
    let held = Unmanaged.passRetained(self)
    let code = pthread_create(&thread, &attributes, runBus, held.toOpaque())
    pthread_attr_destroy(&attributes)
    if code != 0 {
      held.release()
      throw DesktopFault("no thread")
    }
  }

  private static func text(_ error: DBusError) -> String {
    error.message.map { String(cString: $0) } ?? "the message bus cannot be reached"
  }

  deinit {
    dbus_connection_close(connection)
    dbus_connection_unref(connection)
    close(wake)
  }

  /// Ends the thread; open calls fail.
  func stop() {
    queue.withLock { $0.isStopped = true }
    ring()
  }

  private func ring() {
    var one: UInt64 = 1
    _ = write(wake, &one, 8)
  }

  /// Runs `job` on the thread; not once the bus is stopped.
  func submit(_ job: @escaping @Sendable (Bus) -> Void) -> Bool {
    let isRunning = queue.withLock { queue in
      if !queue.isStopped { queue.jobs.append(job) }
      return !queue.isStopped
    }
    if isRunning { ring() }
    return isRunning
  }

  /// Calls a method and waits for its answer.
  func call<Value: Sendable>(
    _ make: @escaping @Sendable () -> BusMessage?, _ read: @escaping @Sendable (inout BusReader) -> Value?
  ) async throws(DesktopFault) -> Value {
    let result: Result<Value, DesktopFault> = await withCheckedContinuation { continuation in
      let isComing = submit { bus in
        guard let message = make() else {
          return continuation.resume(returning: .failure(DesktopFault("no memory")))
        }
        bus.send(message) { result in
          switch result {
          case .failure(let fault): continuation.resume(returning: .failure(fault))
          case .success(var reader):
            let value = read(&reader)
            continuation.resume(
              returning: value.map { .success($0) } ?? .failure(DesktopFault("an answer of another form")))
          }
        }
      }
      if !isComing { continuation.resume(returning: .failure(DesktopFault("the bus is closed"))) }
    }
    return try result.get()
  }

  /// On the thread.
  ///
  /// - Parameter reply: Nil when none is wanted.
  func send(_ message: BusMessage, _ reply: Reply? = nil) {
    var serial: UInt32 = 0
    if reply == nil { dbus_message_set_no_reply(message.pointer, 1) }
    guard dbus_connection_send(connection, message.pointer, &serial) != 0 else {
      reply?(.failure(DesktopFault("no memory")))
      return
    }
    if let reply { replies[serial] = (time.moment + Self.patience, reply) }
  }

  /// On the thread: signals that fit come from now on.
  func match(_ rule: String) { dbus_bus_add_match(connection, rule, nil) }

  fileprivate func run() {
    var descriptor: Int32 = -1
    guard dbus_connection_get_unix_fd(connection, &descriptor) != 0 else { return end("no socket") }
    while true {
      let (jobs, isStopped) = queue.withLock { queue in
        defer { queue.jobs = [] }
        return queue
      }
      if isStopped { return end("the bus is closed") }
      for job in jobs { job(self) }
      _ = dbus_connection_read_write(connection, 0)
      while let message = dbus_connection_pop_message(connection) {
        take(BusMessage(owning: message))
      }
      guard dbus_connection_get_is_connected(connection) != 0 else { return end("the bus has gone") }
      expire()
      let wantsToWrite = dbus_connection_has_messages_to_send(connection) != 0
      var polled = [
        pollfd(fd: descriptor, events: Int16(POLLIN) | (wantsToWrite ? Int16(POLLOUT) : 0), revents: 0),
        pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
      ]
      _ = poll(&polled, 2, replies.isEmpty ? -1 : 1_000)
      if polled[1].revents != 0 {
        var count: UInt64 = 0
        _ = read(wake, &count, 8)
      }
    }
  }

  private func take(_ message: BusMessage) {
    switch dbus_message_get_type(message.pointer) {
    case DBUS_MESSAGE_TYPE_METHOD_RETURN:
      replies.removeValue(forKey: dbus_message_get_reply_serial(message.pointer))?.reply(
        .success(BusReader(message)))
    case DBUS_MESSAGE_TYPE_ERROR:
      let name = dbus_message_get_error_name(message.pointer).map { String(cString: $0) } ?? "error"
      replies.removeValue(forKey: dbus_message_get_reply_serial(message.pointer))?.reply(
        .failure(DesktopFault(name)))
    case DBUS_MESSAGE_TYPE_SIGNAL: received(BusReader(message), self)
    default: break
    }
  }

  private func expire() {
    let now = time.moment
    for (serial, entry) in replies where entry.deadline < now {
      replies[serial] = nil
      entry.reply(.failure(DesktopFault("no answer in time")))
    }
  }

  private func end(_ reason: String) {
    let jobs = queue.withLock { queue in
      queue.isStopped = true
      defer { queue.jobs = [] }
      return queue.jobs
    }
    // Their sends fail on a connection that is gone, and their replies with the others.
    for job in jobs { job(self) }
    let open = replies.values
    replies = [:]
    for entry in open { entry.reply(.failure(DesktopFault(reason))) }
  }
}

private func runBus(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let context else { return nil }
  Unmanaged<Bus>.fromOpaque(context).takeRetainedValue().run()
  return nil
}
