import Bytes
import Connections
import EventLoops
import PushXMPP
import Seams
import TLSCore
import WebSocketCore
import XMLCore
import XMPPCore

/// One client stream with as little around it as can be: what is measured is the server.
///
/// Belongs to its loop.
final class LeanStream: ChannelDelegate {
  /// What all streams of the loop read and write with.
  final class Scratch {
    var text: [UInt8] = []
    var output = ByteWriter(capacity: 16_384)
    let webSocket = WebSocketScratch()
  }

  private let loop: EventLoop
  private let scratch: Scratch
  private let stream: ClientStream
  private var channel: Channel?
  private let context: TLSContext
  private let port: UInt16
  private var handshake: ClientHandshake?
  private var webSocket: XMPPWebSocket?
  /// Called with each message's JSON text.
  var received: (LeanStream, UnsafeRawBufferPointer) -> Void = { _, _ in }
  var ready: (LeanStream) -> Void = { _ in }
  var failed: (String) -> Void = { _ in }

  init(
    identity: String, password: String, port: UInt16, isWebSocket: Bool = false, context: TLSContext,
    scratch: Scratch, on loop: EventLoop
  ) {
    self.loop = loop
    self.port = port
    self.context = context
    self.scratch = scratch
    if isWebSocket {
      handshake = ClientHandshake(
        host: "localhost:\(port)", path: "/xmpp", subprotocol: "xmpp", random: { .random(in: .min ... .max) })
    }
    var limits = StreamLimits()
    limits.loginWithin = .seconds(60)
    limits.deadAfter = .seconds(3_600)
    limits.pingAfter = .seconds(3_600)
    stream = ClientStream(
      login: ClientLogin(
        host: "fcm-xmpp.googleapis.com",
        credentials: PlainCredentials(authcid: identity, password: password)), limits: limits, now: loop.now)
  }

  func connect() {
    ChannelConnector.connect(
      host: "127.0.0.1", port: port, name: "localhost", context: context, timeout: .seconds(60), on: loop
    ) { [self] result in
      switch result {
      case .failure(let end): failed("\(end)")
      case .success(let channel):
        self.channel = channel
        channel.delegate = self
        if let handshake { channel.send(handshake.request) } else { open() }
      }
    }
  }

  private func open() {
    stream.open(output: &scratch.output, now: loop.now)
    flush()
  }

  func received(_ plaintext: UnsafeRawBufferPointer) {
    var offset = 0
    if handshake != nil {
      guard (try? handshake?.receive(plaintext, &offset)) == true else { return }
      handshake = nil
      webSocket = XMPPWebSocket(
        .client, messageBytesMax: 65_536, now: loop.now, random: { .random(in: .min ... .max) })
      open()
    }
    guard let webSocket, let channel else { return feed(plaintext) }
    while let event = webSocket.next(
      plaintext, &offset, limits: stream.xmlLimits, scratch.webSocket, to: channel, now: loop.now)
    {
      switch event {
      case .stream(let range):
        let message = scratch.webSocket.message
        message.withUnsafeBytes { feed(UnsafeRawBufferPointer(rebasing: $0[range])) }
      case .alive: break
      case .fault(let condition): failed(condition.rawValue)
      case .ended(let why): failed(why)
      }
    }
  }

  private func feed(_ plaintext: UnsafeRawBufferPointer) {
    var offset = 0
    while let event = stream.next(
      plaintext, &offset, scratch: &scratch.text, output: &scratch.output, now: loop.now)
    {
      flush()
      switch event {
      case .ready: ready(self)
      case .message(let head):
        scratch.text.withUnsafeBytes { received(self, UnsafeRawBufferPointer(rebasing: $0[head.text])) }
      case .refused(let refused): failed("stanza error: \(refused.text)")
      case .ended(let end): failed("\(end)")
      }
    }
    flush()
  }

  func ended(_ reason: ChannelEnd) { failed("\(reason)") }

  func send(_ bytes: UnsafeRawBufferPointer) {
    if let webSocket, let channel {
      webSocket.send(stanza: bytes, scratch.webSocket, to: channel)
    } else {
      channel?.send(bytes)
    }
  }

  func close() {
    failed = { _ in }
    channel?.abort()
  }

  private func flush() {
    guard !scratch.output.isEmpty else { return }
    scratch.output.bytes.withUnsafeBytes { bytes in
      if let webSocket, let channel {
        webSocket.send(stream: bytes, scratch.webSocket, to: channel, now: loop.now)
      } else {
        channel?.send(bytes)
      }
    }
    scratch.output.removeAll()
  }
}

/// Finds what the generator needs in the server's own JSON, without reading all of it.
enum Lean {
  /// The text behind `"message_id":"`, up to the next quote.
  static func messageID(_ json: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    rest(of: json, behind: "\"message_id\":\"").map { tail in
      UnsafeRawBufferPointer(rebasing: tail[..<(tail.firstIndex(of: UInt8(ascii: "\"")) ?? tail.count)])
    }
  }

  static func isAck(_ json: UnsafeRawBufferPointer) -> Bool {
    rest(of: json, behind: "\"message_type\":\"ack\"") != nil
  }

  private static func rest(of text: UnsafeRawBufferPointer, behind mark: StaticString)
    -> UnsafeRawBufferPointer?
  {
    mark.withUTF8Buffer { mark in
      let raw = UnsafeRawBufferPointer(mark)
      guard let at = Search.first(raw, in: text) else { return nil }
      return UnsafeRawBufferPointer(rebasing: text[(at + raw.count)...])
    }
  }
}
