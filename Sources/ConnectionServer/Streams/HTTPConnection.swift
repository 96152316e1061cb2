import Bytes
import Connections
import EventLoops
import HTTPCore
import Seams
import TLSCore

/// One HTTP connection of the server: bytes to a machine, requests to a handler, answers back.
///
/// Which version is spoken is settled when the channel opens: by the protocol that TLS agreed on, or on a plain
/// channel by the first bytes.
final class HTTPConnection: ChannelDelegate, LoginGuest {
  /// Output that waits for a slow peer before its requests are no longer read.
  private static var waitingBytesMax: Int { 256 * 1024 }
  /// A peer that takes nothing for so long is given up.
  private static var writeTimeout: Duration { .seconds(30) }

  enum Machine {
    case one(HTTPServerConnection)
    case two(HTTP2ServerConnection)
  }

  let loop: any Loop
  private let worker: LoopWorker
  let channel: Channel
  let limits: HTTPLimits
  private let handler: any HTTPHandler
  private(set) var machine: Machine
  private var timer: LoopTimer?
  /// Of the request of HTTP/1.1 that is being answered.
  private var number = 0
  private var waiting: HTTPRequest?
  /// Requests of HTTP/2 in the handler's hands, also those whose stream is gone.
  var handedOut = 0
  /// Connections that streams of HTTP/2 carry, by stream.
  var tunnels: [Int32: BytePipe] = [:]
  /// Those whose bytes wait for the client's window.
  var tunnelsQueued: Set<Int32> = []
  private var isRunning = false
  private var isFlushDue = false
  private var isReadingPaused = false
  private var hasInput = false
  /// Where it counts until TLS is open.
  private var gate: LoginGate?
  private(set) var isEnded = false

  /// - Parameters:
  ///   - isAdmin: The connection is served to the end of a drain, so that it can be watched.
  ///   - gate: The listener's.
  init(
    worker: LoopWorker, channel: Channel, limits: HTTPLimits, handler: any HTTPHandler, isAdmin: Bool = false,
    gate: LoginGate? = nil
  ) {
    self.gate = gate
    self.worker = worker
    loop = worker.loop
    self.channel = channel
    self.limits = limits
    self.handler = handler
    machine = .one(HTTPServerConnection(limits: limits, now: worker.loop.now))
    if !isAdmin { worker.httpConnections[ObjectIdentifier(self)] = self }
    channel.closesOnInputEnd = false
    channel.delegate = self
    channel.setUserTimeout(Self.writeTimeout)
    gate?.enter(self)
    channel.start()
    armTimer()
  }

  var heardAt: Moment { channel.heardAt }

  private func leaveGate() {
    gate?.leave(self)
    gate = nil
  }

  // MARK: From the channel

  func opened() {
    leaveGate()
    guard channel.tls?.applicationProtocol == "h2" else { return }
    becomeTwo()
    scheduleFlush()
  }

  private func becomeTwo() {
    machine = .two(HTTP2ServerConnection(limits: limits, now: loop.now))
    armTimer()
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    guard !isEnded else { return }
    if !hasInput {
      hasInput = true
      // Prior knowledge, where no TLS could tell (RFC 9113 §3.3); the whole preface comes at once.
      if channel.tls == nil, HTTP2ServerConnection.isPreface(bytes) { becomeTwo() }
    }
    switch machine {
    case .one(let machine):
      let request = machine.receive(bytes, now: loop.now, wall: loop.wall)
      flush()
      if let request { run(request) }
      if !isEnded, !machine.wantsRead { channel.pauseReading() }
    case .two(let machine):
      machine.receive(bytes, now: loop.now, wall: loop.wall)
      passTunnelEvents(machine)
      for arrival in machine.takeArrivals() {
        handedOut += 1
        handler.handle(arrival.request, on: worker, HTTPReply(self, number: Int(arrival.stream)))
      }
      scheduleFlush()
    }
  }

  func writable() {
    if case .two = machine { scheduleFlush() }
  }

  func inputEnded() {
    guard !isEnded else { return }
    switch machine {
    case .one(let machine): machine.receiveEnd(wall: loop.wall)
    case .two(let machine): machine.receiveEnd(now: loop.now)
    }
    flush()
  }

  func ended(_ reason: ChannelEnd) { finish() }

  // MARK: From the server

  /// Answers what is asked already and closes.
  func drain() {
    guard !isEnded else { return }
    switch machine {
    case .one(let machine): machine.drain()
    case .two(let machine): machine.drain(now: loop.now)
    }
    flush()
  }

  /// Whether a request is read or answered.
  var isBusy: Bool {
    guard !isEnded else { return false }
    return switch machine {
    case .one(let machine): machine.isBusy
    case .two(let machine): machine.isBusy
    }
  }

  /// Closes now, with what was answered.
  func close() {
    guard !isEnded else { return }
    channel.close()
    finish()
  }

  // MARK: From replies

  func awaits(_ number: Int) -> Bool {
    guard !isEnded else { return false }
    return switch machine {
    case .one: number == self.number
    case .two(let machine): machine.awaits(Int32(truncatingIfNeeded: number))
    }
  }

  func answer(_ number: Int, _ response: HTTPResponse) {
    switch machine {
    case .one(let machine):
      guard awaits(number) else { return }
      let next = machine.respond(response, now: loop.now, wall: loop.wall)
      flush()
      guard !isEnded else { return }
      if machine.wantsRead { channel.resumeReading() }
      if let next { run(next) }
    case .two(let machine):
      handedOut -= 1
      guard !isEnded else { return }
      machine.respond(
        Int32(truncatingIfNeeded: number), response, now: loop.now, wall: loop.wall)
      scheduleFlush()
    }
  }

  func upgrade(_ number: Int, _ response: HTTPResponse) -> (channel: Channel, unread: [UInt8])? {
    if case .two(let machine) = machine {
      return openTunnel(number, response, machine).map { (channel: $0, unread: []) }
    }
    guard case .one(let machine) = machine, awaits(number), response.status == 101 else { return nil }
    _ = machine.respond(response, now: loop.now, wall: loop.wall)
    flush()
    channel.delegate = nil
    channel.closesOnInputEnd = true
    channel.resumeReading()
    finish()
    return (channel, machine.takeHeld())
  }

  // MARK: Helpers

  /// Hands requests over one after the other; a handler that answers at once must not call back into here.
  private func run(_ first: HTTPRequest) {
    waiting = first
    guard !isRunning else { return }
    isRunning = true
    while !isEnded, let request = waiting {
      waiting = nil
      number += 1
      handler.handle(request, on: worker, HTTPReply(self, number: number))
    }
    isRunning = false
  }

  /// One flush for all that a round brings.
  func scheduleFlush() {
    guard !isFlushDue else { return }
    isFlushDue = true
    loop.later { [self] in
      isFlushDue = false
      flush()
    }
  }

  private func flush() {
    guard !isEnded else { return }
    switch machine {
    case .one(let machine):
      send(&machine.output)
      if machine.isDone { close() } else { armTimer() }
    case .two(let machine):
      if channel.queuedBytes < Self.waitingBytesMax {
        machine.flush(now: loop.now)
        send(&machine.output)
        passTunnelEvents(machine)
        tellTunnels(machine)
      }
      guard !machine.isDone else {
        close()
        return
      }
      armTimer()
      setReading(handedOut < 2 * limits.streamsMax && channel.queuedBytes < Self.waitingBytesMax)
    }
  }

  private func send(_ output: inout ByteWriter) {
    guard !output.isEmpty else { return }
    output.bytes.withUnsafeBytes { channel.send($0) }
    output.removeAll()
  }

  private func setReading(_ isWanted: Bool) {
    guard isReadingPaused == isWanted else { return }
    isReadingPaused = !isWanted
    if isWanted { channel.resumeReading() } else { channel.pauseReading() }
  }

  private func armTimer() {
    let due: Moment? =
      switch machine {
      case .one(let machine): machine.nextDeadline
      case .two(let machine): machine.nextDeadline
      }
    guard let due else { return }
    if let timer, timer.isActive, timer.deadline <= due { return }
    timer?.cancel()
    timer = loop.after(max(.zero, due - loop.now)) { [weak self] in self?.timedOut() }
  }

  private func timedOut() {
    guard !isEnded else { return }
    switch machine {
    case .one(let machine): machine.timeout(now: loop.now, wall: loop.wall)
    case .two(let machine): machine.timeout(now: loop.now, wall: loop.wall)
    }
    flush()
    if !isEnded { armTimer() }
  }

  private func finish() {
    guard !isEnded else { return }
    isEnded = true
    leaveGate()
    timer?.cancel()
    timer = nil
    worker.httpConnections[ObjectIdentifier(self)] = nil
    breakTunnels()
  }
}
