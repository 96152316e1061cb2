import Connections
import EventLoops
import HTTPCore
import PushModel
import WebSocketCore
import XMPPCore

/// Takes the paths that speak WebSocket and gives all other requests on.
///
/// `/xmpp` is XMPP of RFC 7395, for devices and app servers; `/echo`, in test mode, sends back what comes.
final class WebSocketDoor: HTTPHandler {
  private let context: ServerContext
  private let others: any HTTPHandler
  private let xmpp: ServerHandshake
  private let echo: ServerHandshake?

  /// - Parameter isAdmin: Of the plain listener on loopback, where only pages of this machine's own are let in.
  init(context: ServerContext, isAdmin: Bool, others: any HTTPHandler) {
    self.context = context
    self.others = others
    let configuration = context.configuration
    let origins =
      isAdmin
      ? OriginRule(allowsNull: false, isLoopbackOnly: true)
      : OriginRule(allowed: Set(configuration.webOrigins.map { $0.lowercased() }))
    xmpp = ServerHandshake(subprotocols: ["xmpp"], origins: origins)
    echo = configuration.acceptsAnyBearer && !isAdmin ? ServerHandshake() : nil
  }

  func handle(_ request: HTTPRequest, on worker: LoopWorker, _ reply: HTTPReply) {
    switch Self.path(request.target) {
    case .xmpp:
      guard let (channel, unread) = upgrade(request, xmpp, reply) else { return }
      let webSocket = XMPPWebSocket(
        .server, messageBytesMax: context.limits.webSocketMessageBytesMax,
        seeOtherURI: context.configuration.seeOtherURI, now: worker.loop.now,
        random: { .random(in: .min ... .max) })
      let connection = XMPPConnection(worker: worker, channel: channel, webSocket: webSocket)
      if !unread.isEmpty { unread.withUnsafeBytes { connection.received($0) } }
    case .echo:
      guard let echo else { return others.handle(request, on: worker, reply) }
      guard let (channel, unread) = upgrade(request, echo, reply) else { return }
      let connection = EchoConnection(worker: worker, channel: channel)
      if !unread.isEmpty { unread.withUnsafeBytes { connection.received($0) } }
    case .other: others.handle(request, on: worker, reply)
    }
  }

  private enum Path { case xmpp, echo, other }

  /// A comparison or two: most requests are messages on their way.
  private static func path(_ target: String) -> Path {
    if target == "/xmpp" || target.hasPrefix("/xmpp?") { return .xmpp }
    return target == "/echo" || target.hasPrefix("/echo?") ? .echo : .other
  }

  private func upgrade(
    _ request: HTTPRequest, _ handshake: ServerHandshake, _ reply: HTTPReply
  ) -> (channel: Channel, unread: [UInt8])? {
    guard !context.isDraining else {
      reply.send(HTTPResponse(status: 503, fields: ["retry-after": "1"]))
      return nil
    }
    switch handshake.answer(request) {
    case .refused(let response):
      reply.send(response)
      return nil
    case .accepted(let response, _):
      guard let given = reply.upgrade(response) else {
        reply.send(HTTPResponse(status: 426, fields: ["upgrade": "websocket"]))
        return nil
      }
      return given
    }
  }
}
