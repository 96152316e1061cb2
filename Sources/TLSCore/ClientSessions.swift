import COpenSSL
import Synchronization

/// Sessions that a client may resume, by server; the newest first and a bounded number of each.
///
/// A session is used once if another is left (RFC 8446 appendix C.4 asks for that so that a watcher cannot link
/// connections); the last one is used again rather than pay for a full handshake.
final class ClientSessions: Sendable {
  // Sendable by argument: OpenSSL counts the references of an SSL_SESSION with atomics.
  private struct Handle: @unchecked Sendable {
    let pointer: OpaquePointer
  }

  /// Servers remembered; beyond that one is forgotten.
  private static var serversMax: Int { 256 }

  private let perServerMax: Int
  private let servers = Mutex<[String: [Handle]]>([:])

  init(perServerMax: Int) { self.perServerMax = perServerMax }

  deinit {
    servers.withLock { servers in
      for handle in servers.values.joined() { SSL_SESSION_free(handle.pointer) }
      servers = [:]
    }
  }

  /// Takes over one reference; false if it is not wanted.
  func keep(_ session: OpaquePointer, for server: String) -> Bool {
    guard perServerMax > 0 else { return false }
    let dropped = servers.withLock { servers -> [Handle] in
      var dropped: [Handle] = []
      if servers[server] == nil, servers.count >= Self.serversMax, let victim = servers.keys.first {
        dropped = servers.removeValue(forKey: victim) ?? []
      }
      servers[server, default: []].append(Handle(pointer: session))
      if let count = servers[server]?.count, count > perServerMax, let oldest = servers[server]?.removeFirst()
      {
        dropped.append(oldest)
      }
      return dropped
    }
    for handle in dropped { SSL_SESSION_free(handle.pointer) }
    return true
  }

  /// Lends the newest session to `body`.
  func use(for server: String, _ body: (OpaquePointer) -> Void) {
    let found = servers.withLock { servers -> Handle? in
      guard let kept = servers[server], let newest = kept.last else { return nil }
      if kept.count > 1 { servers[server]?.removeLast() } else { SSL_SESSION_up_ref(newest.pointer) }
      return newest
    }
    guard let found else { return }
    body(found.pointer)
    SSL_SESSION_free(found.pointer)
  }

  /// Forgets a server, whose sessions proved useless.
  func forget(_ server: String) {
    let dropped = servers.withLock { $0.removeValue(forKey: server) ?? [] }
    for handle in dropped { SSL_SESSION_free(handle.pointer) }
  }
}
