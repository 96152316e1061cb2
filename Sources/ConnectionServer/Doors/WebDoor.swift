import Connections
import EventLoops
import HTTPCore
import PushModel
import WebAssets
import WebSocketCore
import XMPPCore

/// Takes what browsers ask for, WebSockets and files, and gives all other requests on.
///
/// `/xmpp` is XMPP of RFC 7395, for devices and app servers; `/echo`, in test mode, sends back what comes; the files are
/// those of `WebAssets`. The administration listener has the console and its feed beside them.
final class WebDoor: HTTPHandler {
  private let context: ServerContext
  private let others: any HTTPHandler
  private let xmpp: ServerHandshake
  /// Of the console's feed, which has no subprotocol.
  private let feed: ServerHandshake
  private let echo: ServerHandshake?
  /// Answers registrations where `others` does not.
  private let registrations: (any HTTPHandler)?

  /// Of the HTTPS listener.
  convenience init(context: ServerContext, front: FrontDoor) {
    self.init(context, isAdmin: false, others: front, registrations: nil)
  }

  /// Of the plain listener on loopback, where only this machine's own pages are let in; devices register there too,
  /// since a browser does not take the development certificate.
  convenience init(context: ServerContext, admin: any HTTPHandler, front: FrontDoor) {
    self.init(context, isAdmin: true, others: admin, registrations: front)
  }

  private init(
    _ context: ServerContext, isAdmin: Bool, others: any HTTPHandler, registrations: (any HTTPHandler)?
  ) {
    self.context = context
    self.others = others
    self.registrations = registrations
    let configuration = context.configuration
    let origins =
      isAdmin
      ? OriginRule(allowsNull: false, isLoopbackOnly: true)
      : OriginRule(allowed: Set(configuration.webOrigins.map { $0.lowercased() }))
    xmpp = ServerHandshake(subprotocols: ["xmpp"], origins: origins)
    feed = ServerHandshake(origins: origins)
    echo = configuration.acceptsAnyBearer && !isAdmin ? ServerHandshake() : nil
  }

  func handle(_ request: HTTPRequest, on worker: LoopWorker, _ reply: HTTPReply) {
    let path = path(request.target)
    // An answer of success would open a tunnel.
    if request.tunnel != nil, [.registrations, .console, .other].contains(path) {
      return reply.send(HTTPResponse(status: 404))
    }
    switch path {
    case .xmpp:
      guard let (channel, unread) = upgrade(request, xmpp, reply) else { return }
      let webSocket = XMPPWebSocket(
        .server, messageBytesMax: context.limits.webSocketMessageBytesMax,
        seeOtherURI: context.configuration.seeOtherURI, now: worker.loop.now,
        random: { [loop = worker.loop] in loop.random() })
      let connection = XMPPConnection(worker: worker, channel: channel, webSocket: webSocket)
      if !unread.isEmpty { unread.withUnsafeBytes { connection.received($0) } }
    case .echo:
      guard let echo else {
        if request.tunnel != nil { return reply.send(HTTPResponse(status: 404)) }
        return others.handle(request, on: worker, reply)
      }
      guard let (channel, unread) = upgrade(request, echo, reply) else { return }
      let connection = EchoConnection(worker: worker, channel: channel)
      if !unread.isEmpty { unread.withUnsafeBytes { connection.received($0) } }
    case .feed:
      guard !worker.console.isFull else {
        return reply.send(HTTPResponse(status: 503, fields: ["retry-after": "5"]))
      }
      guard let (channel, unread) = upgrade(request, feed, reply) else { return }
      let page = ConsoleFeed(worker: worker, channel: channel)
      if !unread.isEmpty { unread.withUnsafeBytes { page.received($0) } }
    case .console:
      guard request.method == "GET", let file = WebAssets.console(request.target) else {
        return others.handle(request, on: worker, reply)
      }
      reply.send(Self.consoleResponse(file))
    case .registrations: (registrations ?? others).handle(request, on: worker, reply)
    case .other:
      if request.method == "GET", let file = WebAssets.find(request.target) {
        reply.send(Self.response(file))
      } else {
        others.handle(request, on: worker, reply)
      }
    }
  }

  private static let consolePolicy = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
    "img-src 'self' https: data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].joined(separator: "; ")

  /// A file of the console: nothing of others runs in it or frames it.
  private static func consoleResponse(_ file: WebAsset) -> HTTPResponse {
    let fields: HTTPFields = [
      "content-type": file.type, "cache-control": "no-cache", "x-content-type-options": "nosniff",
      "x-frame-options": "DENY", "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
      // Pictures come from where a message says, as on a phone.
      "content-security-policy": consolePolicy,
    ]
    return HTTPResponse(status: 200, fields: fields, body: file.bytes)
  }

  private static func response(_ file: WebAsset) -> HTTPResponse {
    let fields: HTTPFields = [
      "content-type": file.type, "cache-control": "no-cache", "x-content-type-options": "nosniff",
      // The module is for pages of other origins too.
      "access-control-allow-origin": "*",
      "content-security-policy":
        "default-src 'self'; connect-src 'self'; img-src 'self' https: data:; base-uri 'none'; frame-ancestors 'none'",
    ]
    return HTTPResponse(status: 200, fields: fields, body: file.bytes)
  }

  private enum Path { case xmpp, echo, feed, console, registrations, other }

  /// A comparison or two: most requests are messages on their way.
  private func path(_ target: String) -> Path {
    if target == "/xmpp" || target.hasPrefix("/xmpp?") { return .xmpp }
    if target == "/echo" || target.hasPrefix("/echo?") { return .echo }
    guard registrations != nil else { return .other }
    if target == "/" || target.hasPrefix("/console/") { return .console }
    if target == "/admin/v1/feed" { return .feed }
    return target.hasPrefix("/v1/projects/") && target.contains("/registrations") ? .registrations : .other
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
