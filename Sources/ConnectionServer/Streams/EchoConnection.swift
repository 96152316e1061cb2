import Bytes
import Connections
import EventLoops
import Seams
import WebSocketCore

/// A WebSocket that sends each message back: for tests of the protocol, in test mode only.
///
/// Messages may be as large as the largest of the Autobahn test suite.
final class EchoConnection: ChannelDelegate {
  private static var limits: WebSocketLimits {
    var limits = WebSocketLimits()
    limits.messageBytesMax = 16 << 20
    limits.fragmentsMax = 1 << 20
    return limits
  }

  /// Output that waits for a slow peer before nothing more is read from it.
  private static var waitingBytesMax: Int { 1 << 20 }

  private unowned let worker: LoopWorker
  private let channel: Channel
  private let machine: WebSocketConnection
  private var scratch: [UInt8] = []
  private var output = ByteWriter()
  private var timer: LoopTimer?
  private var isPaused = false

  init(worker: LoopWorker, channel: Channel) {
    self.worker = worker
    self.channel = channel
    machine = WebSocketConnection(
      .server, limits: Self.limits, now: worker.loop.now, random: { .random(in: .min ... .max) })
    worker.echoes[ObjectIdentifier(self)] = self
    channel.backlogBytesMax = 64 << 20
    channel.delegate = self
    armTimer()
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    var offset = 0
    while let event = machine.next(bytes, &offset, scratch: &scratch, output: &output, now: worker.loop.now) {
      perform(event)
    }
    flush()
    if channel.queuedBytes > Self.waitingBytesMax, !isPaused {
      isPaused = true
      channel.pauseReading()
    }
    armTimer()
  }

  func writable() {
    guard isPaused else { return }
    isPaused = false
    channel.resumeReading()
  }

  func ended(_ reason: ChannelEnd) { finish() }

  /// Begins to close; the channel closes when the peer has answered.
  func close(_ code: CloseCode) {
    machine.close(code, output: &output, now: worker.loop.now)
    flush()
    armTimer()
  }

  private func perform(_ event: WebSocketEvent) {
    switch event {
    case .message(let content, let range):
      scratch.withUnsafeBytes {
        machine.send(content, UnsafeRawBufferPointer(rebasing: $0[range]), output: &output)
      }
      flush()
    case .alive: break
    case .ended:
      flush()
      channel.close()
      finish()
    }
  }

  private func flush() {
    guard !output.isEmpty else { return }
    output.bytes.withUnsafeBytes { channel.send($0) }
    output.removeAll()
  }

  private func armTimer() {
    guard let due = machine.nextDeadline else { return }
    if let timer, timer.isActive, timer.deadline <= due { return }
    timer?.cancel()
    timer = worker.loop.after(max(.zero, due - worker.loop.now)) { [weak self] in self?.timedOut() }
  }

  private func timedOut() {
    let event = machine.deadlineReached(now: worker.loop.now, output: &output)
    flush()
    if let event { perform(event) } else { armTimer() }
  }

  private func finish() {
    timer?.cancel()
    timer = nil
    worker.echoes[ObjectIdentifier(self)] = nil
  }
}
