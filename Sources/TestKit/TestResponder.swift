import Bytes
import Connections
import EventLoops
package import HTTPCore
import Seams
package import Synchronization
import TLSCore

/// An HTTPS server that answers what it is told to: for clients whose server must be slow, busy or wrong.
package final class TestResponder: Sendable {
  package enum Answer: Sendable {
    case respond(HTTPResponse)
    /// Nothing, for ever.
    case silence
    /// The connection is reset.
    case cut
  }

  package let port: Int
  /// PEM file of the authority that signed its certificate.
  package let authority: String
  /// Requests so far, in order.
  package let requests = Watched<[HTTPRequest]>([])
  /// Most requests that were unanswered at a time, and connections so far.
  package let most = Mutex((open: 0, unanswered: 0, connections: 0))
  private let loop: EventLoop
  private let directory: TemporaryDirectory
  private let answer: @Sendable (HTTPRequest, Int) -> Answer

  /// - Parameters:
  ///   - protocols: What it agrees to speak.
  ///   - answer: Is given the request and how many came before it; called on the responder's loop.
  package static func start(
    protocols: [String] = ["h2", "http/1.1"], _ answer: @escaping @Sendable (HTTPRequest, Int) -> Answer
  ) async throws -> TestResponder {
    let directory = try TemporaryDirectory()
    let folder = directory.path
    _ = try DevelopmentCertificates.loadOrMake(in: folder, nowSeconds: SystemTime().wall.ms / 1_000)
    var options = TLSServerOptions(
      certificateChainFile: folder + "/server.pem", privateKeyFile: folder + "/server.key")
    options.protocols = protocols
    let context = try TLSContext(server: options)
    let loop = EventLoop(name: "responder")
    try loop.start()
    let socket = try ListeningSocket(host: "127.0.0.1", port: 0)
    let responder = TestResponder(loop, Int(socket.port), directory, answer)
    _ = try await loop.perform {
      let listener = try TCPListener(
        socket, on: loop,
        accepted: { accepted in
          guard let channel = try? Channel(accepting: accepted, context: context, on: loop) else { return }
          responder.most.withLock { $0.connections += 1 }
          _ = ResponderConnection(channel, on: loop, responder)
        }, troubled: { _ in })
      loop.onStop { listener.close() }
    }
    return responder
  }

  private init(
    _ loop: EventLoop, _ port: Int, _ directory: TemporaryDirectory,
    _ answer: @escaping @Sendable (HTTPRequest, Int) -> Answer
  ) {
    self.loop = loop
    self.port = port
    self.directory = directory
    self.answer = answer
    authority = directory.path + "/ca.pem"
  }

  package func stop() { loop.stop() }

  fileprivate func answer(_ request: HTTPRequest) -> Answer {
    var count = 0
    requests.update { requests in
      count = requests.count
      requests.append(request)
    }
    return answer(request, count)
  }

  fileprivate func opened(_ change: Int) {
    most.withLock { most in
      most.open += change
      most.unanswered = max(most.unanswered, most.open)
    }
  }
}

private final class ResponderConnection: ChannelDelegate {
  private let channel: Channel
  private let loop: EventLoop
  private let responder: TestResponder
  private var one: HTTPServerConnection
  private var two: HTTP2ServerConnection?

  init(_ channel: Channel, on loop: EventLoop, _ responder: TestResponder) {
    self.channel = channel
    self.loop = loop
    self.responder = responder
    one = HTTPServerConnection(now: loop.now)
    channel.delegate = self
    channel.start()
  }

  func opened() {
    if channel.tls?.applicationProtocol == "h2" { two = HTTP2ServerConnection(now: loop.now) }
    flush()
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    if let two {
      two.receive(bytes, now: loop.now, wall: loop.wall)
      // All of a read are taken before the first is answered, so that those on the way at a time can be counted.
      let arrivals = two.takeArrivals()
      responder.opened(arrivals.count)
      for arrival in arrivals {
        perform(arrival.request) { two.respond(arrival.stream, $0, now: self.loop.now, wall: self.loop.wall) }
      }
      responder.opened(-arrivals.count)
    } else {
      var next = one.receive(bytes, now: loop.now, wall: loop.wall)
      while let request = next {
        next = nil
        responder.opened(1)
        perform(request) { next = self.one.respond($0, now: self.loop.now, wall: self.loop.wall) }
        responder.opened(-1)
      }
    }
    flush()
  }

  private func perform(_ request: HTTPRequest, _ respond: (HTTPResponse) -> Void) {
    switch responder.answer(request) {
    case .respond(let response): respond(response)
    case .silence: break
    case .cut: channel.abort()
    }
  }

  private func flush() {
    two?.flush(now: loop.now)
    let output = two?.output.take() ?? one.output.take()
    if !output.isEmpty { channel.send(output) }
    if two?.isDone ?? one.isDone { channel.close() }
  }

  func ended(_ reason: ChannelEnd) {}
}
