import Bytes
import Connections
import EventLoops
import Seams
import TestKit
import WebSocketCore

/// A WebSocket client that sends back what it is sent, over a plain connection: one after the other.
final class EchoClient {
  private let loop: EventLoop
  private let port: UInt16

  init(port: UInt16) throws {
    self.port = port
    loop = EventLoop(name: "echo-client")
    try loop.start()
  }

  func stop() { loop.stop() }

  /// Connects, echoes, and waits for the end, whatever it is: the suite judges it.
  func run(_ path: String) async throws {
    let ended = Watched(false)
    let (loop, port) = (loop, port)
    try await loop.perform {
      let echo = Echo(path, port, loop) { ended.update { $0 = true } }
      ChannelConnector.connect(
        host: "127.0.0.1", port: port, context: nil, timeout: .seconds(10), on: loop
      ) { echo.connected($0) }
    }
    try await ended.wait(for: "the end of \(path)", within: .seconds(60)) { $0 ? () : nil }
  }
}

/// One connection; belongs to its loop, and to its channel once there is one.
private final class Echo: ChannelDelegate {
  private var handshake: ClientHandshake
  private let loop: EventLoop
  private let machine: WebSocketConnection
  private let done: () -> Void
  private var channel: Channel?
  private var isOpen = false
  private var scratch: [UInt8] = []
  private var output = ByteWriter()
  private var timer: LoopTimer?

  init(_ path: String, _ port: UInt16, _ loop: EventLoop, _ done: @escaping () -> Void) {
    handshake = ClientHandshake(
      host: "127.0.0.1:\(port)", path: path, subprotocol: nil, random: { .random(in: .min ... .max) })
    var limits = WebSocketLimits()
    limits.messageBytesMax = 16 << 20
    limits.fragmentsMax = 1 << 20
    machine = WebSocketConnection(
      .client, limits: limits, now: loop.now, random: { .random(in: .min ... .max) })
    self.loop = loop
    self.done = done
  }

  func connected(_ result: Result<Channel, ChannelEnd>) {
    guard case .success(let channel) = result else { return done() }
    self.channel = channel
    channel.delegate = self
    channel.backlogBytesMax = 64 << 20
    channel.send(handshake.request)
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    var offset = 0
    if !isOpen {
      guard (try? handshake.receive(bytes, &offset)) ?? false else {
        if offset == bytes.count { return }
        channel?.abort()
        return
      }
      isOpen = true
    }
    while let event = machine.next(bytes, &offset, scratch: &scratch, output: &output, now: loop.now) {
      switch event {
      case .message(let content, let range):
        scratch.withUnsafeBytes {
          machine.send(content, UnsafeRawBufferPointer(rebasing: $0[range]), output: &output)
        }
      case .alive: break
      case .ended:
        flush()
        // The server closes first (RFC 6455 §7.1.1); not for ever.
        timer = loop.after(.seconds(2)) { [weak self] in self?.channel?.close() }
      }
    }
    flush()
  }

  private func flush() {
    guard !output.isEmpty else { return }
    output.bytes.withUnsafeBytes { channel?.send($0) }
    output.removeAll()
  }

  func ended(_ reason: ChannelEnd) {
    timer?.cancel()
    channel = nil
    done()
  }
}
