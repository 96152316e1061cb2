import Bytes
import Connections
import EventLoops
import Glibc
import Seams
import Synchronization
import TLSCore
import Testing
import XMLCore
import XMPPCore

/// A server on a socket whose answers a test writes: TLS, the accepting side of XMPP, and a script.
final class ScriptedServer: Sendable {
  /// What the server does with one message of a client.
  enum Step: Sendable {
    /// Sends a stanza around this JSON.
    case answer(String)
    /// Sends these bytes as they are.
    case raw(String)
    /// Ends the stream in order.
    case end
    /// Ends the stream with an error.
    case fail(StreamErrorCondition)
    /// Cuts the connection.
    case cut
  }

  struct Script: Sendable {
    var acceptsPassword: @Sendable (String) -> Bool = { _ in true }
    /// Whether bytes of the client are answered at all.
    var isMute = false
    /// Streams after whose bind nothing is answered any more: a connection that is dead and looks open.
    var dead: Set<Int> = []
    /// Sent after a stream is bound; the number counts streams from 1.
    var onBound: @Sendable (Int) -> [Step] = { _ in [] }
    /// The number of the stream, and the JSON of the message.
    var onMessage: @Sendable (Int, String) -> [Step] = { _, _ in [] }
  }

  struct Seen: Sendable {
    var connections = 0
    var bound = 0
    var messages: [String] = []
  }

  let port: Int
  let caFile: String
  let seen = Mutex(Seen())
  let script: Script
  private let loop: EventLoop
  private let directory: String

  init(_ script: Script = Script()) async throws {
    self.script = script
    directory = "/tmp/weir-client-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    try #require(mkdir(directory, 0o700) == 0)
    let certificates = try DevelopmentCertificates.make(nowSeconds: Int64(time(nil)))
    caFile = directory + "/ca.pem"
    try PrivateFile.write(certificates.caPEM, to: caFile, mode: 0o644)
    try PrivateFile.write(certificates.serverPEM, to: directory + "/server.pem", mode: 0o644)
    try PrivateFile.write(certificates.serverKeyPEM, to: directory + "/server.key", mode: 0o600)
    let context = try TLSContext(
      server: TLSServerOptions(
        certificateChainFile: directory + "/server.pem", privateKeyFile: directory + "/server.key"))
    loop = EventLoop(name: "scripted")
    try loop.start()
    let socket = try ListeningSocket(host: "127.0.0.1", port: 0)
    port = Int(socket.port)
    let me = Unowned(self)
    try await loop.perform { [loop] in
      let listener = try TCPListener(socket, on: loop) { accepted in
        guard let server = me.value else { return accepted.discard() }
        if let channel = try? Channel(accepting: accepted, context: context, on: loop) {
          _ = ScriptedStream(channel, server)
        }
      }
      loop.onStop { withExtendedLifetime(listener) {} }
    }
  }

  deinit {
    let loop = loop
    loop.submit { loop.stop() }
    for name in ["ca.pem", "server.pem", "server.key"] { unlink(directory + "/" + name) }
    rmdir(directory)
  }

  var messages: [String] { seen.withLock { $0.messages } }
}

/// A weak reference that may cross threads.
private final class Unowned: @unchecked Sendable {
  // Sendable by argument: set once before it is shared; weak loads are atomic.
  private(set) weak var value: ScriptedServer?
  init(_ value: ScriptedServer) { self.value = value }
}

/// One connection of a ``ScriptedServer``.
private final class ScriptedStream: ChannelDelegate {
  private let channel: Channel
  private let server: ScriptedServer
  private let stream: ServerStream
  private var text: [UInt8] = []
  private var output = ByteWriter()
  private var number = 0

  init(_ channel: Channel, _ server: ScriptedServer) {
    self.channel = channel
    self.server = server
    stream = ServerStream(now: channel.loop.now) { UInt64.random(in: .min ... .max) }
    server.seen.withLock { $0.connections += 1 }
    channel.delegate = self
    channel.start()
  }

  func received(_ plaintext: UnsafeRawBufferPointer) {
    guard !server.script.isMute, !server.script.dead.contains(number) else { return }
    let now = channel.loop.now
    var offset = 0
    while let event = stream.next(plaintext, &offset, scratch: &text, output: &output, now: now) {
      switch event {
      case .authenticate(let credentials):
        if server.script.acceptsPassword(credentials.password) {
          stream.authenticated(local: credentials.identity, output: &output, now: now)
        } else {
          _ = stream.refused(output: &output, now: now)
        }
      case .bound:
        number = server.seen.withLock { seen in
          seen.bound += 1
          return seen.bound
        }
        flush()
        perform(server.script.onBound(number))
      case .message(let head):
        let json = String(decoding: text[head.text], as: UTF8.self)
        server.seen.withLock { $0.messages.append(json) }
        perform(server.script.onMessage(number, json))
      case .peerClosing:
        stream.close(output: &output)
        flush()
        channel.close()
      case .ended:
        flush()
        channel.close()
      }
    }
    flush()
  }

  private func perform(_ steps: [ScriptedServer.Step]) {
    for step in steps {
      switch step {
      case .answer(let json):
        output.append("<message><gcm xmlns=\"google:mobile:data\">")
        _ = output.appendEscapedText(json)
        output.append("</gcm></message>")
      case .raw(let bytes): output.append(bytes)
      case .end:
        stream.close(output: &output)
        flush()
        channel.close()
      case .fail(let condition):
        stream.fail(condition, output: &output)
        flush()
        channel.close()
      case .cut: channel.abort()
      }
    }
    flush()
  }

  private func flush() {
    guard !output.isEmpty else { return }
    output.bytes.withUnsafeBytes { channel.send($0) }
    output.removeAll()
  }

  func ended(_ reason: ChannelEnd) {}
}
