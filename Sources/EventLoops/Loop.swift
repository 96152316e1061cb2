package import Seams

/// What lives on a loop asks this of it: the time, chance, timers, a place in the round, and connections.
///
/// The seam between this code and the machine. ``EventLoop`` is the real one: a thread, sockets, the system's
/// clocks. A simulator has another, whose clock, network and chance come from one seed; everything above runs on
/// either without knowing which. Calls come once a read, a write or a round, not once a byte.
package protocol Loop: AnyObject, Sendable {
  var name: String { get }
  /// The monotonic time, the same for a whole round.
  var now: Moment { get }
  /// The wall clock, the same for a whole round.
  var wall: WallTime { get }
  /// The share of time in which the loop worked lately, 0 to 1.
  var load: Double { get }
  /// A number that no peer can guess.
  func random() -> UInt64
  /// Traps in debug builds when called from elsewhere.
  func assertCurrent()

  /// Calls `body` once `delay` has passed.
  @discardableResult
  func after(_ delay: Duration, _ body: @escaping () -> Void) -> LoopTimer
  /// Calls `body` in this round, after the current callback has returned and before the flush.
  func later(_ body: @escaping () -> Void)
  /// Calls `hook` at the end of every round, for as long as the loop runs.
  func onRoundEnd(_ hook: @escaping () -> Void)
  /// Tells how many connections a round has written to, and to how many of them more than one thing.
  func wrote(to connections: Int, joined: Int)
  /// The loop's one instance of a class, made at first use.
  func local<Value: AnyObject>(_ type: Value.Type, make: () -> Value) -> Value

  /// Runs `job` on the loop, from any thread; false once the loop has stopped.
  @discardableResult
  func submit(_ job: @escaping @Sendable () -> Void) -> Bool
  /// Puts a mailbox that became non-empty on the list, from any thread; false once the loop has stopped.
  func announce(_ mailbox: any WaitingMail) -> Bool
  /// Ends the loop and everything on it.
  func stop()

  /// Connects; see ``TCPConnector/connect(host:port:timeout:on:completion:)``.
  func connect(
    host: String, port: UInt16, timeout: Duration,
    completion: @escaping (Result<any ByteStream, NetworkFault>) -> Void
  ) -> any ConnectAttempt
}

extension Loop {
  /// Runs `body` on the loop's thread and gives its value back; for the edges, not for messages.
  ///
  /// - Throws: What `body` throws, or ``NetworkFault`` when the loop has stopped.
  package func perform<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let isComing = submit { continuation.resume(with: Result { try body() }) }
      if !isComing { continuation.resume(throwing: NetworkFault.loopStopped) }
    }
  }
}

/// A connection that is being opened.
package protocol ConnectAttempt: AnyObject {
  /// Gives up; the completion hears `isCancelled`. Harmless when done.
  func cancel()
}

/// A connection of bytes on a loop, as a ``TCPStream`` is one.
package protocol ByteStream: AnyObject {
  /// The loop it is on.
  var home: any Loop { get }
  var delegate: (any TCPStreamDelegate)? { get set }
  var peer: PeerAddress? { get }
  var isOpen: Bool { get }
  /// Bytes accepted by `write` that the system has not taken.
  var queuedBytes: Int { get }

  func setUserTimeout(_ timeout: Duration)
  func setSendBuffer(bytes: Int)
  func resumeReading()
  func pauseReading()
  func write(_ bytes: UnsafeRawBufferPointer)
  func finishWriting()
  func close()
  func closeReset()
  /// Takes the connection off the loop, so that another can go on with it; nil when that cannot be.
  func leave() -> (any DetachedStream)?
}

/// A connection that has left one loop and not come to another.
package protocol DetachedStream: Sendable {
  /// Goes on with it on a loop; what was not sent goes first. It is closed when this throws.
  func attach(to loop: any Loop, peer: PeerAddress?) throws(NetworkFault) -> any ByteStream
  /// Closes it, for when no loop takes it.
  func discard()
}

extension EventLoop: Loop {
  package func random() -> UInt64 { .random(in: .min ... .max) }

  package func connect(
    host: String, port: UInt16, timeout: Duration,
    completion: @escaping (Result<any ByteStream, NetworkFault>) -> Void
  ) -> any ConnectAttempt {
    TCPConnector.connect(host: host, port: port, timeout: timeout, on: self) { completion($0.map { $0 }) }
  }
}

extension TCPConnector: ConnectAttempt {}

extension TCPStream: ByteStream {
  package var home: any Loop { loop }
  package func leave() -> (any DetachedStream)? { detach() }
}

extension DetachedSocket: DetachedStream {
  package func attach(to loop: any Loop, peer: PeerAddress?) throws(NetworkFault) -> any ByteStream {
    guard let loop = loop as? EventLoop else {
      discard()
      throw NetworkFault.notSupported(.adopt)
    }
    return try TCPStream(adopting: self, peer: peer, on: loop)
  }
}

extension TCPListener {
  /// Listens on a loop of whatever kind; sockets need an ``EventLoop``.
  package convenience init(
    _ socket: ListeningSocket, on loop: any Loop, accepted: @escaping (AcceptedSocket) -> Void,
    troubled: @escaping (NetworkFault) -> Void
  ) throws(NetworkFault) {
    guard let loop = loop as? EventLoop else { throw NetworkFault.notSupported(.listen) }
    // With its last argument named, so that it is the other initialiser and not this one again.
    try self.init(socket, on: loop, accepted: accepted, troubled: troubled, accepting: acceptNext)
  }
}
