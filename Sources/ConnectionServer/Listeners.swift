import Connections
import EventLoops
import HTTPCore
import PushModel
import TLSCore
import Telemetry

/// Opens the server's ports on its loops.
///
/// Each loop listens on the XMPP and HTTPS ports with sockets of its own and the system spreads connections;
/// administration is served by the first loop.
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
    let front = FrontDoor(context: context)
    let https = try await openHTTP(
      hosts, configuration.httpsPort, WebDoor(context: context, front: front), workers)
    let adminPort = try await openAdmin(
      Self.addresses(of: "localhost"), configuration.adminPort,
      WebDoor(
        context: context, admin: AsyncHTTPHandler { await admin.answer(APIRequest($0)).http }, front: front))
    return Ports(xmpp: xmpp, https: https, admin: adminPort)
  }

  /// What a host setting binds; the first must succeed, the others may be missing on a machine.
  static func addresses(of host: String) -> [String] {
    host == "localhost" ? ["127.0.0.1", "::1"] : [host]
  }

  private func openXMPP(_ hosts: [String], _ wanted: Int) async throws -> Int {
    let tls = tls
    return try await open("xmpp", hosts, wanted, on: workers, gate: { $0.xmppGate }) { worker, accepted in
      // A connection that cannot be set up is closed already.
      guard let channel = try? Channel(accepting: accepted, context: tls.xmpp, on: worker.loop) else {
        return
      }
      _ = XMPPConnection(worker: worker, channel: channel, gate: worker.xmppGate)
    }
  }

  private func openHTTP(
    _ hosts: [String], _ wanted: Int, _ handler: any HTTPHandler, _ workers: [LoopWorker]
  ) async throws -> Int {
    let (tls, limits) = (tls, httpLimits)
    return try await open("https", hosts, wanted, on: workers, gate: { $0.httpsGate }) { worker, accepted in
      guard let channel = try? Channel(accepting: accepted, context: tls.https, on: worker.loop) else {
        return
      }
      _ = HTTPConnection(
        worker: worker, channel: channel, limits: limits, handler: handler, gate: worker.httpsGate)
    }
  }

  private func openAdmin(_ hosts: [String], _ wanted: Int, _ handler: any HTTPHandler) async throws -> Int {
    let limits = httpLimits
    return try await open("admin", hosts, wanted, on: Array(workers.prefix(1))) { worker, accepted in
      guard let channel = try? Channel(accepting: accepted, context: nil, on: worker.loop) else { return }
      _ = HTTPConnection(worker: worker, channel: channel, limits: limits, handler: handler, isAdmin: true)
    }
  }

  private var httpLimits: HTTPLimits {
    var limits = HTTPLimits()
    limits.headBytesMax = context.limits.httpHeadBytesMax
    limits.bodyBytesMax = context.limits.httpBodyBytesMax
    return limits
  }

  /// Binds one port on every host and listens with a socket of its own on each of `workers`.
  private func open(
    _ name: String, _ hosts: [String], _ wanted: Int, on workers: [LoopWorker],
    gate: (@Sendable (LoopWorker) -> LoginGate)? = nil,
    _ accept: @escaping @Sendable (LoopWorker, AcceptedSocket) -> Void
  ) async throws -> Int {
    var port = wanted
    for (order, host) in hosts.enumerated() {
      do {
        // Sockets that share a port would share it with another server too: an exclusive one finds that out.
        if port != 0 { _ = try Self.listen(host, port, name: name, isShared: false) }
        for worker in workers {
          let socket = try Self.listen(host, port, name: name, isShared: name != "admin")
          port = Int(socket.port)
          let log = context.log
          try await worker.loop.perform {
            let listener = try TCPListener(
              socket, on: worker.loop, accepted: { accept(worker, $0) },
              troubled: { log.error("Accepting a connection failed", ["fault": .init("\($0)")]) })
            if let gate = gate?(worker) {
              listener.admits = { [unowned gate] in gate.admits() }
              gate.listeners.append(listener)
            }
            worker.listeners.append(listener)
          }
        }
      } catch  where order > 0 {
        context.log.debug("An address of the host could not be bound", ["host": .init(host)])
      }
    }
    return port
  }

  private static func listen(
    _ host: String, _ port: Int, name: String, isShared: Bool
  ) throws -> ListeningSocket {
    guard let number = UInt16(exactly: port) else {
      throw ServerFault("The \(name) port \(port) is no port number: use 0 to 65535.")
    }
    do {
      return try ListeningSocket(host: host, port: number, isShared: isShared)
    } catch {
      throw ServerFault(
        "Cannot listen on \(host) port \(port) for \(name): \(error). Choose another with --\(name)-port, or 0 for a free one."
      )
    }
  }
}
