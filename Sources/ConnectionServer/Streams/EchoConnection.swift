import Connections
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
  private let socket: MessageSocket
  private var isPaused = false

  init(worker: LoopWorker, channel: Channel) {
    self.worker = worker
    self.channel = channel
    socket = MessageSocket(channel, limits: Self.limits, on: worker.loop)
    worker.echoes[ObjectIdentifier(self)] = self
    channel.backlogBytesMax = 64 << 20
    channel.delegate = self
    socket.onMessage = { [unowned socket] in socket.send($0, $1) }
    socket.onEnd = { [unowned self] in finish() }
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    socket.receive(bytes)
    if channel.queuedBytes > Self.waitingBytesMax, !isPaused {
      isPaused = true
      channel.pauseReading()
    }
  }

  func writable() {
    guard isPaused else { return }
    isPaused = false
    channel.resumeReading()
  }

  func ended(_ reason: ChannelEnd) { finish() }

  /// Begins to close; the channel closes when the peer has answered.
  func close(_ code: CloseCode) { socket.close(code) }

  private func finish() {
    socket.stop()
    worker.echoes[ObjectIdentifier(self)] = nil
  }
}
