import Bytes
import Connections
import EventLoops
import HTTPCore
import Seams

/// One HTTP/1.1 connection of the server: bytes to the machine, requests to a handler, answers back.
final class HTTPConnection: ChannelDelegate {
  typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse

  private let loop: any Loop
  private let channel: Channel
  private let machine: HTTPServerConnection
  private let handler: Handler
  private var timer: LoopTimer?
  private var isEnded = false

  init(loop: any Loop, channel: Channel, limits: HTTPLimits, handler: @escaping Handler) {
    self.loop = loop
    self.channel = channel
    self.handler = handler
    machine = HTTPServerConnection(limits: limits, now: loop.now)
    channel.delegate = self
    channel.start()
    armTimer()
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    guard !isEnded else { return }
    let request = machine.receive(bytes, now: loop.now, wall: loop.wall)
    flush()
    if let request { run(request) }
    if !isEnded, !machine.wantsRead { channel.pauseReading() }
  }

  private func run(_ request: HTTPRequest) {
    let (handler, loop) = (handler, loop)
    let me = Handover(self)
    // The edge between loops and async code: one task a request of this slow path.
    Task {
      let response = await handler(request)
      loop.submit { me.value.answered(response) }
    }
  }

  private func answered(_ response: HTTPResponse) {
    guard !isEnded else { return }
    let next = machine.respond(response, now: loop.now, wall: loop.wall)
    flush()
    guard !isEnded else { return }
    if machine.wantsRead { channel.resumeReading() }
    armTimer()
    if let next { run(next) }
  }

  private func flush() {
    if !machine.output.isEmpty {
      machine.output.bytes.withUnsafeBytes { channel.send($0) }
      machine.output.removeAll()
    }
    if machine.isDone {
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

  func ended(_ reason: ChannelEnd) { finish() }

  private func finish() {
    isEnded = true
    timer?.cancel()
    timer = nil
  }
}
