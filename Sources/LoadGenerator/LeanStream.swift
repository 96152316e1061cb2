import Bytes
package import Connections
package import EventLoops
import PushXMPP
import Seams
package import TLSCore
import WebSocketCore
import XMLCore
import XMPPCore

/// Where lean streams connect.
package struct LeanServer: Sendable {
  package var host: String
  package var port: UInt16
  /// The name the certificate must carry; nil is ``host``.
  package var name: String?
  package var context: TLSContext
  /// Where the server speaks XMPP over WebSocket; nil for XMPP over TCP.
  package var webSocketPath: String?
  /// For connecting and TLS, and again for each step of the log-in.
  package var timeout: Duration
  /// Whether the steps of a log-in are sent at once; see `ClientLogin`.
  ///
  /// Never over WebSocket.
  package var isPipelined = true

  package init(
    host: String, port: UInt16, name: String? = nil, context: TLSContext, webSocketPath: String? = nil,
    timeout: Duration = .seconds(60)
  ) {
    self.host = host
    self.port = port
    self.name = name
    self.context = context
    self.webSocketPath = webSocketPath
    self.timeout = timeout
  }
}

/// One client stream with as little around it as can be: what is measured is the server.
///
/// Answers pings and sends none of its own. Belongs to its loop; used once.
package final class LeanStream: ChannelDelegate {
  /// What all streams of a loop read and write with.
  package final class Scratch {
    var text: [UInt8] = []
    var output = ByteWriter(capacity: 16_384)
    let webSocket = WebSocketScratch()

    package init() {}
  }

  private let loop: EventLoop
  private let scratch: Scratch
  private let stream: ClientStream
  private let server: LeanServer
  private var connector: ChannelConnector?
  private var channel: Channel?
  /// Until the server has let the WebSocket in.
  private var handshake: ClientHandshake?
  private var webSocket: XMPPWebSocket?
  private var isOver = false
  private var isPaused = false
  /// Logged in and bound, and not over.
  package private(set) var isReady = false
  /// Unanswered messages that the server allows, when more than the protocol's was asked for and granted.
  package var grantedWindow: Int? { stream.grantedWindow }
  /// Decrypted bytes that were read.
  package private(set) var bytesRead = 0
  /// Called with each message's JSON text.
  package var received: (LeanStream, UnsafeRawBufferPointer) -> Void = { _, _ in }
  package var ready: (LeanStream) -> Void = { _ in }
  /// Called once, unless ``close()`` came first.
  package var failed: (String) -> Void = { _ in }

  package init(
    identity: String, password: String, server: LeanServer, window: Int? = nil, scratch: Scratch,
    on loop: EventLoop
  ) {
    self.loop = loop
    self.server = server
    self.scratch = scratch
    var limits = StreamLimits()
    limits.loginWithin = server.timeout
    limits.deadAfter = .seconds(1 << 30)
    limits.pingAfter = .seconds(1 << 30)
    var login = ClientLogin(
      host: "fcm-xmpp.googleapis.com",
      credentials: PlainCredentials(authcid: identity, password: password), window: window)
    // As the device runtime does.
    login.isPipelined = server.isPipelined && server.webSocketPath == nil
    stream = ClientStream(login: login, limits: limits, now: loop.now)
  }

  package func connect() {
    connector = ChannelConnector.connect(
      host: server.host, port: server.port, name: server.name, context: server.context,
      timeout: server.timeout, on: loop
    ) { [self] result in
      connector = nil
      switch result {
      case .failure(let end): over("\(end)")
      case .success(let channel):
        guard !isOver else { return channel.abort() }
        self.channel = channel
        channel.delegate = self
        guard let path = server.webSocketPath else { return open() }
        let handshake = ClientHandshake(
          host: "\(server.name ?? server.host):\(server.port)", path: path, subprotocol: "xmpp",
          random: { [loop] in loop.random() })
        self.handshake = handshake
        channel.send(handshake.request)
      }
    }
  }

  private func open() {
    stream.open(output: &scratch.output, now: loop.now)
    flush()
  }

  package func received(_ plaintext: UnsafeRawBufferPointer) {
    bytesRead += plaintext.count
    var offset = 0
    if handshake != nil {
      do throws(HandshakeFault) {
        guard try handshake?.receive(plaintext, &offset) == true else { return }
      } catch {
        return over("\(error)")
      }
      handshake = nil
      webSocket = XMPPWebSocket(
        .client, messageBytesMax: 1 << 20, now: loop.now, random: { [loop] in loop.random() })
      open()
    }
    guard let webSocket else { return feed(plaintext) }
    while !isOver, let channel,
      let event = webSocket.next(
        plaintext, &offset, limits: stream.xmlLimits, scratch.webSocket, to: channel, now: loop.now)
    {
      switch event {
      case .stream(let range):
        let message = scratch.webSocket.message
        message.withUnsafeBytes { feed(UnsafeRawBufferPointer(rebasing: $0[range])) }
      case .alive: break
      case .fault(let condition): over(condition.rawValue)
      case .ended(let why): over(why)
      }
    }
  }

  private func feed(_ plaintext: UnsafeRawBufferPointer) {
    var offset = 0
    while !isOver,
      let event = stream.next(
        plaintext, &offset, scratch: &scratch.text, output: &scratch.output, now: loop.now)
    {
      flush()
      switch event {
      case .ready:
        isReady = true
        ready(self)
      case .message(let head):
        scratch.text.withUnsafeBytes { received(self, UnsafeRawBufferPointer(rebasing: $0[head.text])) }
      case .refused(let refused): over("stanza error: \(refused.text)")
      case .ended(let end): over(Self.text(of: end))
      }
    }
    flush()
  }

  package func ended(_ reason: ChannelEnd) {
    channel = nil
    over("\(reason)")
  }

  /// Sends one stanza, as XMPP over TCP has it.
  package func send(_ bytes: UnsafeRawBufferPointer) {
    guard let channel else { return }
    if let webSocket {
      webSocket.send(stanza: bytes, scratch.webSocket, to: channel)
    } else {
      channel.send(bytes)
    }
  }

  /// Stops reading; what is on its way may still come.
  package func pause() {
    guard !isPaused else { return }
    isPaused = true
    channel?.pauseReading()
  }

  package func resume() {
    guard isPaused else { return }
    isPaused = false
    channel?.resumeReading()
  }

  /// Ends it at once; nothing is called any more.
  package func close() {
    failed = { _ in }
    over("closed")
    channel?.abort()
    channel = nil
  }

  private func over(_ why: String) {
    guard !isOver else { return }
    isOver = true
    isReady = false
    connector?.cancel()
    connector = nil
    let failed = failed
    // The closures hold whoever made the stream.
    received = { _, _ in }
    ready = { _ in }
    self.failed = { _ in }
    channel?.close()
    failed(why)
  }

  private static func text(of end: ClientEnd) -> String {
    switch end {
    case .closed: "closed by the server"
    case .failed(.loginRefused(let failure)): "login refused: \(failure.rawValue)"
    case .failed(.streamError(let condition, let text)): text.map { "\(condition): \($0)" } ?? condition
    case .failed(let fault): "\(fault)"
    }
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
