import Bytes
import Connections
import EventLoops
import Seams
import WebSocketCore

/// The server's end of a WebSocket on a channel: messages out of bytes and back, pings and deadlines by the loop's clock.
///
/// Whoever has it is the channel's delegate, hands it what comes, and says ``stop()`` when the channel is over. Belongs to the
/// loop's thread.
final class MessageSocket {
  /// A whole message came; good until the call returns.
  var onMessage: (MessageContent, UnsafeRawBufferPointer) -> Void = { _, _ in }
  /// The WebSocket is over, and its channel is closing.
  var onEnd: () -> Void = {}

  private let loop: any Loop
  private let channel: Channel
  private let machine: WebSocketConnection
  private var scratch: [UInt8] = []
  private var output = ByteWriter()
  private var timer: LoopTimer?
  private var isStopped = false

  init(_ channel: Channel, limits: WebSocketLimits, on loop: any Loop) {
    self.loop = loop
    self.channel = channel
    machine = WebSocketConnection(
      .server, limits: limits, now: loop.now, random: { .random(in: .min ... .max) })
    armTimer()
  }

  /// Takes bytes of the peer.
  func receive(_ bytes: UnsafeRawBufferPointer) {
    var offset = 0
    while let event = machine.next(bytes, &offset, scratch: &scratch, output: &output, now: loop.now) {
      perform(event)
    }
    flush()
    armTimer()
  }

  func send(_ content: MessageContent, _ message: UnsafeRawBufferPointer) {
    machine.send(content, message, output: &output)
    flush()
  }

  /// Begins to close: the peer is to answer, and ``onEnd`` comes then.
  func close(_ code: CloseCode) {
    machine.close(code, output: &output, now: loop.now)
    flush()
    armTimer()
  }

  /// No more deadlines.
  func stop() {
    isStopped = true
    timer?.cancel()
    timer = nil
  }

  private func perform(_ event: WebSocketEvent) {
    switch event {
    case .message(let content, let range):
      scratch.withUnsafeBytes { onMessage(content, UnsafeRawBufferPointer(rebasing: $0[range])) }
    case .alive: break
    case .ended:
      flush()
      channel.close()
      stop()
      onEnd()
    }
  }

  private func flush() {
    guard !output.isEmpty else { return }
    output.bytes.withUnsafeBytes { channel.send($0) }
    output.removeAll()
  }

  private func armTimer() {
    guard !isStopped, let due = machine.nextDeadline else { return }
    if let timer, timer.isActive, timer.deadline <= due { return }
    timer?.cancel()
    timer = loop.after(max(.zero, due - loop.now)) { [weak self] in self?.timedOut() }
  }

  private func timedOut() {
    let event = machine.deadlineReached(now: loop.now, output: &output)
    flush()
    if let event { perform(event) } else { armTimer() }
  }
}
