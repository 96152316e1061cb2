import Bytes
import Connections
import EventLoops
import HTTPCore
import Seams

/// One HTTP/1.1 connection of the server: bytes to the machine, requests to a handler, answers back.
final class HTTPConnection: ChannelDelegate {
  let loop: EventLoop
  private let worker: LoopWorker
  private let channel: Channel
  private let machine: HTTPServerConnection
  private let handler: any HTTPHandler
  private var timer: LoopTimer?
  /// Of the request that is being answered.
  private var number = 0
  private var waiting: HTTPRequest?
  private var isRunning = false
  private var isEnded = false

  /// - Parameter isAdmin: The connection is served to the end of a drain, so that it can be watched.
  init(
    worker: LoopWorker, channel: Channel, limits: HTTPLimits, handler: any HTTPHandler, isAdmin: Bool = false
  ) {
    self.worker = worker
    loop = worker.loop
    self.channel = channel
    self.handler = handler
    machine = HTTPServerConnection(limits: limits, now: worker.loop.now)
    if !isAdmin { worker.httpConnections[ObjectIdentifier(self)] = self }
    channel.closesOnInputEnd = false
    channel.delegate = self
    channel.start()
    armTimer()
  }

  // MARK: From the channel

  func received(_ bytes: UnsafeRawBufferPointer) {
    guard !isEnded else { return }
    let request = machine.receive(bytes, now: loop.now, wall: loop.wall)
    flush()
    if let request { run(request) }
    if !isEnded, !machine.wantsRead { channel.pauseReading() }
  }

  func inputEnded() {
    machine.receiveEnd(wall: loop.wall)
    flush()
  }

  func ended(_ reason: ChannelEnd) { finish() }

  /// Answers what is asked already and closes.
  func drain() {
    guard !isEnded else { return }
    machine.drain()
    flush()
  }

  /// Whether a request is read or answered.
  var isBusy: Bool { !isEnded && machine.isBusy }

  /// Closes now, with what was answered.
  func close() {
    guard !isEnded else { return }
    channel.close()
    finish()
  }

  // MARK: From replies

  func awaits(_ number: Int) -> Bool { !isEnded && number == self.number }

  func answer(_ number: Int, _ response: HTTPResponse) {
    guard awaits(number) else { return }
    let next = machine.respond(response, now: loop.now, wall: loop.wall)
    flush()
    guard !isEnded else { return }
    if machine.wantsRead { channel.resumeReading() }
    armTimer()
    if let next { run(next) }
  }

  func upgrade(_ number: Int, _ response: HTTPResponse) -> (channel: Channel, unread: [UInt8])? {
    guard awaits(number), response.status == 101 else { return nil }
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

  private func flush() {
    if !machine.output.isEmpty {
      machine.output.bytes.withUnsafeBytes { channel.send($0) }
      machine.output.removeAll()
    }
    if machine.isDone, !isEnded {
      channel.close()
      finish()
    }
  }

  private func armTimer() {
    guard let due = machine.nextDeadline else { return }
    if let timer, timer.isActive, timer.deadline <= due { return }
    timer?.cancel()
    timer = loop.after(max(.zero, due - loop.now)) { [weak self] in
      guard let self, !isEnded else { return }
      machine.timeout(now: loop.now, wall: loop.wall)
      flush()
      if !isEnded { armTimer() }
    }
  }

  private func finish() {
    isEnded = true
    timer?.cancel()
    timer = nil
    worker.httpConnections[ObjectIdentifier(self)] = nil
  }
}
