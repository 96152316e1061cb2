import Connections
import EventLoops
import HTTPCore
import PushModel
import TLSCore
import Telemetry

/// Opens the server's ports on its loops.
///
/// Each loop listens on the XMPP port with a socket of its own and the system spreads connections; HTTP, which is
/// for registration and administration, is accepted on the first loop.
struct Listeners: Sendable {
  struct Ports: Sendable {
    var xmpp: Int
    var https: Int
    var admin: Int
  }

  let context: ServerContext
  let tls: TLSContexts
  let workers: [LoopWorker]

  func open(admin: AdminAPI) async throws -> Ports {
    let configuration = context.configuration
    let hosts = Self.addresses(of: configuration.host)
    let xmpp = try await openXMPP(hosts, configuration.xmppPort)
    let routes = HTTPRoutes(
      registrations: RegistrationAPI(context: context),
      subscriptions: TopicSubscriptionAPI(context: context))
    let https = try await openHTTP(hosts, configuration.httpsPort, isPlain: false) {
      await routes.answer(APIRequest($0)).http
    }
    let adminPort = try await openHTTP(
      Self.addresses(of: "localhost"), configuration.adminPort, isPlain: true
    ) { await admin.answer(APIRequest($0)).http }
    return Ports(xmpp: xmpp, https: https, admin: adminPort)
  }

  /// What a host setting binds; the first must succeed, the others may be missing on a machine.
  static func addresses(of host: String) -> [String] {
    host == "localhost" ? ["127.0.0.1", "::1"] : [host]
  }

  private func openXMPP(_ hosts: [String], _ wanted: Int) async throws -> Int {
    var port = wanted
    for (order, host) in hosts.enumerated() {
      do {
        for worker in workers {
          let socket = try Self.listen(host, port, name: "xmpp")
          port = Int(socket.port)
          let (tls, log) = (tls, context.log)
          try await worker.loop.perform {
            worker.listeners.append(
              try TCPListener(
                socket, on: worker.loop,
                accepted: { accepted in
                  // A connection that cannot be set up is closed already.
                  if let channel = try? Channel(accepting: accepted, context: tls.xmpp, on: worker.loop) {
                    _ = XMPPConnection(worker: worker, channel: channel)
                  }
                },
                troubled: { log.error("Accepting a connection failed", ["fault": .init("\($0)")]) }))
          }
        }
      } catch  where order > 0 {
        context.log.debug("An address of the host could not be bound", ["host": .init(host)])
      }
    }
    return port
  }

  private func openHTTP(
    _ hosts: [String], _ wanted: Int, isPlain: Bool, _ handler: @escaping HTTPConnection.Handler
  ) async throws -> Int {
    var port = wanted
    let worker = workers[0]
    var limits = HTTPLimits()
    limits.headBytesMax = context.limits.httpHeadBytesMax
    limits.bodyBytesMax = context.limits.httpBodyBytesMax
    for (order, host) in hosts.enumerated() {
      do {
        let socket = try Self.listen(host, port, name: isPlain ? "admin" : "https")
        port = Int(socket.port)
        let (tls, log, limits) = (tls, context.log, limits)
        try await worker.loop.perform {
          worker.listeners.append(
            try TCPListener(
              socket, on: worker.loop,
              accepted: { accepted in
                let context = isPlain ? nil : tls.https
                if let channel = try? Channel(accepting: accepted, context: context, on: worker.loop) {
                  _ = HTTPConnection(loop: worker.loop, channel: channel, limits: limits, handler: handler)
                }
              },
              troubled: { log.error("Accepting a connection failed", ["fault": .init("\($0)")]) }))
        }
      } catch  where order > 0 {
        context.log.debug("An address of the host could not be bound", ["host": .init(host)])
      }
    }
    return port
  }

  private static func listen(_ host: String, _ port: Int, name: String) throws -> ListeningSocket {
    guard let number = UInt16(exactly: port) else {
      throw ServerFault("The \(name) port \(port) is no port number: use 0 to 65535.")
    }
    do {
      return try ListeningSocket(host: host, port: number, isShared: name == "xmpp")
    } catch {
      throw ServerFault(
        "Cannot listen on \(host) port \(port) for \(name): \(error). Choose another with --\(name)-port, or 0 for a free one."
      )
    }
  }
}
