import Bytes
import Connections
import EventLoops
import JSONCore
import Seams
import TestKit
import WebSocketCore

/// A page of the console, as far as its feed goes: a WebSocket client that keeps what it is sent.
final class FeedReader: Sendable {
  struct Inbox: Sendable, CustomStringConvertible {
    var messages: [JSONValue] = []
    var end: String?
    var description: String { "\(messages.count) messages, end: \(end ?? "none")" }
  }

  let inbox = Watched(Inbox())
  private let loop: EventLoop
  private let client: Handover<Client>

  init(_ address: ServerAddress, path: String = "/admin/v1/feed") async throws {
    let loop = EventLoop(name: "feed-reader")
    try loop.start()
    self.loop = loop
    let (inbox, port) = (inbox, UInt16(clamping: address.admin))
    client = try await loop.perform { Handover(Client(inbox, port, path, loop)) }
    let made = client
    loop.submit {
      ChannelConnector.connect(host: "127.0.0.1", port: port, context: nil, timeout: .seconds(10), on: loop) {
        made.value.connected($0)
      }
    }
  }

  deinit { loop.stop() }

  func send(_ text: String) {
    let client = client
    loop.submit { client.value.send(text) }
  }
  func pauseReading() {
    let client = client
    loop.submit { client.value.channel?.pauseReading() }
  }
  func resumeReading() {
    let client = client
    loop.submit { client.value.channel?.resumeReading() }
  }
  func close() {
    let client = client
    loop.submit { client.value.channel?.abort() }
  }

  /// Waits until a message is as wanted.
  @discardableResult
  func next(_ what: String, where wanted: @escaping @Sendable (JSONValue) -> Bool) async throws -> JSONValue {
    try await inbox.wait(for: what, within: .seconds(20)) { $0.messages.first(where: wanted) }
  }

  /// All steps that came so far.
  var steps: [JSONValue] { inbox.current.messages.flatMap { $0["steps"]?.array ?? [] } }

  /// Belongs to its loop, and to its channel once there is one.
  private final class Client: ChannelDelegate {
    private let inbox: Watched<Inbox>
    private let loop: EventLoop
    private var handshake: ClientHandshake
    private let machine: WebSocketConnection
    private var scratch: [UInt8] = []
    private var output = ByteWriter()
    private var waiting: [String] = []
    private var isOpen = false
    var channel: Channel?

    init(_ inbox: Watched<Inbox>, _ port: UInt16, _ path: String, _ loop: EventLoop) {
      self.inbox = inbox
      self.loop = loop
      handshake = ClientHandshake(
        host: "127.0.0.1:\(port)", path: path, subprotocol: nil, random: { .random(in: .min ... .max) })
      var limits = WebSocketLimits()
      limits.messageBytesMax = 1 << 20
      machine = WebSocketConnection(
        .client, limits: limits, now: loop.now, random: { .random(in: .min ... .max) })
    }

    func connected(_ result: Result<Channel, ChannelEnd>) {
      switch result {
      case .failure(let reason): inbox.update { $0.end = "\(reason)" }
      case .success(let channel):
        self.channel = channel
        channel.delegate = self
        channel.send(handshake.request)
      }
    }

    func send(_ text: String) {
      guard isOpen else {
        waiting.append(text)
        return
      }
      var text = text
      text.withUTF8 { machine.send(.text, UnsafeRawBufferPointer($0), output: &output) }
      flush()
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
      var offset = 0
      if !isOpen {
        do {
          guard try handshake.receive(bytes, &offset) else { return }
        } catch {
          inbox.update { $0.end = "\(error)" }
          channel?.abort()
          return
        }
        isOpen = true
        for text in waiting { send(text) }
      }
      while let event = machine.next(bytes, &offset, scratch: &scratch, output: &output, now: loop.now) {
        switch event {
        case .message(_, let range):
          guard let value = try? JSONValue(parsing: Array(scratch[range])) else { continue }
          inbox.update { $0.messages.append(value) }
        case .alive: break
        case .ended(let reason):
          inbox.update { $0.end = "\(reason)" }
          flush()
          channel?.close()
        }
      }
      flush()
    }

    func ended(_ reason: ChannelEnd) { inbox.update { $0.end = $0.end ?? "\(reason)" } }

    private func flush() {
      guard !output.isEmpty else { return }
      output.bytes.withUnsafeBytes { channel?.send($0) }
      output.removeAll()
    }
  }
}
