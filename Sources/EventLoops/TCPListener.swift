import CUV
import Glibc
import Seams

/// A bound and listening socket that has no loop yet.
///
/// Closes itself unless a listener takes it.
package final class ListeningSocket: Sendable {
  /// The port that was given, also when 0 was asked for.
  package let port: UInt16
  let descriptor: CInt

  /// Binds and listens.
  ///
  /// - Parameters:
  ///   - host: A numeric address, or a name whose first address is taken. `::` takes IPv4 too.
  ///   - port: 0 picks a free one.
  ///   - isShared: With SO_REUSEPORT: each loop binds a socket of its own to one port and the system spreads
  ///     connections over them.
  ///   - backlog: Connections the system keeps until they are accepted.
  package init(
    host: String, port: UInt16, isShared: Bool = false, backlog: Int = 4096
  ) throws(NetworkFault) {
    guard let address = numericAddress(host, port: port) ?? resolved(host, port: port) else {
      throw NetworkFault(.resolve, code: UV_EAI_NONAME.rawValue)
    }
    let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
    let descriptor = socket(CInt(address.ss_family), type, 0)
    guard descriptor >= 0 else { throw NetworkFault(.listen, code: -errno) }
    var on: CInt = 1
    let size = socklen_t(MemoryLayout<CInt>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
    if isShared { setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, size) }
    if CInt(address.ss_family) == AF_INET6 {
      var off: CInt = 0
      setsockopt(descriptor, CInt(IPPROTO_IPV6), IPV6_V6ONLY, &off, size)
    }
    let bound = withSocketAddress(address) { bind(descriptor, $0, $1) }
    guard bound == 0, listen(descriptor, CInt(clamping: backlog)) == 0 else {
      let code = -errno
      Glibc.close(descriptor)
      throw NetworkFault(.listen, code: code)
    }
    self.descriptor = descriptor
    self.port = boundPort(of: descriptor)
  }

  deinit { Glibc.close(descriptor) }
}

/// A connection that was accepted and has no loop yet.
///
/// Whoever holds it owns the descriptor.
package struct AcceptedSocket: Sendable {
  package let descriptor: CInt
  package let peer: PeerAddress?

  /// Closes the connection, for when nobody takes it.
  package func discard() { Glibc.close(descriptor) }
}

/// Accepts connections on a loop and hands out their descriptors, for this loop or another.
package final class TCPListener: LoopHandle {
  /// Connections accepted at most before others have their turn.
  private static var acceptedPerRoundMax: Int { 64 }
  /// How long accepting pauses when the system has no descriptors left.
  private static var pause: Duration { .milliseconds(100) }

  /// Takes one connection from a listening descriptor; tests put a failing system in its place.
  package typealias Accepting = (_ descriptor: CInt) -> Result<AcceptedSocket, NetworkFault>

  package var port: UInt16 { socket.port }
  private let socket: ListeningSocket
  private let accepted: (AcceptedSocket) -> Void
  private let troubled: (NetworkFault) -> Void
  private let accepting: Accepting
  private var poll: UnsafeMutablePointer<uv_poll_t>?
  private var pauseTimer: LoopTimer?
  private var isHeld = false

  /// Whether a connection may be accepted now; those that may not wait in the system's queue until ``acceptAgain()``.
  package var admits: () -> Bool = { true }

  /// - Parameters:
  ///   - accepted: Owns what it is given. To spread over loops, submit the socket to one of them.
  ///   - troubled: Told when accepting fails, once a pause of 100 ms; for the log.
  package init(
    _ socket: ListeningSocket, on loop: EventLoop, accepted: @escaping (AcceptedSocket) -> Void,
    troubled: @escaping (NetworkFault) -> Void = { _ in }, accepting: @escaping Accepting = acceptNext
  ) throws(NetworkFault) {
    self.socket = socket
    self.accepted = accepted
    self.troubled = troubled
    self.accepting = accepting
    super.init(on: loop)
    let handle = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    let code = uv_poll_init(loop.uv, handle, socket.descriptor)
    guard code == 0 else {
      handle.deallocate()
      throw NetworkFault(.listen, code: code)
    }
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    poll = handle
    uv_poll_start(handle, CInt(UV_READABLE.rawValue), acceptReady)
  }

  /// Accepts on `loop` and hands each connection to the next of `loops`; `accepted` runs on that one.
  package convenience init(
    _ socket: ListeningSocket, on loop: EventLoop, spreadingOver loops: [EventLoop],
    accepted: @escaping @Sendable (AcceptedSocket, EventLoop) -> Void,
    troubled: @escaping (NetworkFault) -> Void = { _ in }
  ) throws(NetworkFault) {
    let loops = loops.isEmpty ? [loop] : loops
    var next = 0
    try self.init(
      socket, on: loop,
      accepted: { connection in
        let chosen = loops[next % loops.count]
        next = (next + 1) % loops.count
        if chosen.isCurrent {
          accepted(connection, chosen)
        } else if !chosen.submit({ accepted(connection, chosen) }) {
          connection.discard()
        }
      }, troubled: troubled)
  }

  /// Goes on after ``admits`` said no.
  package func acceptAgain() {
    guard isHeld, let poll else { return }
    isHeld = false
    uv_poll_start(poll, CInt(UV_READABLE.rawValue), acceptReady)
  }

  /// Stops accepting and closes the socket.
  ///
  /// Harmless when repeated.
  package func close() {
    guard let poll else { return }
    self.poll = nil
    pauseTimer?.cancel()
    uv_close(upcast(poll), listenerClosed)
  }

  override func loopStops() { close() }

  fileprivate func accept() {
    loop.beginCallback()
    acceptWaiting()
    loop.readEnded()
  }

  private func acceptWaiting() {
    for _ in 0..<Self.acceptedPerRoundMax {
      guard let poll else { return }
      guard admits() else {
        isHeld = true
        uv_poll_stop(poll)
        return
      }
      let fault: NetworkFault
      switch accepting(socket.descriptor) {
      case .success(let connection):
        accepted(connection)
        continue
      case .failure(let failure): fault = failure
      }
      switch fault.code {
      case UV_EAGAIN.rawValue: return
      // The peer went away while it waited: accept(2) says to try the next.
      case UV_ECONNABORTED.rawValue, UV_EPROTO.rawValue, UV_ENETDOWN.rawValue, UV_EHOSTUNREACH.rawValue:
        continue
      default:
        pauseAccepting(poll)
        troubled(fault)
        return
      }
    }
  }

  /// Without a pause a full descriptor table would keep the loop spinning on a readable listener.
  private func pauseAccepting(_ poll: UnsafeMutablePointer<uv_poll_t>) {
    uv_poll_stop(poll)
    pauseTimer = loop.after(Self.pause) { [weak self] in
      guard let self, let poll = self.poll else { return }
      uv_poll_start(poll, CInt(UV_READABLE.rawValue), acceptReady)
    }
  }
}

/// accept(2), for either family.
package func acceptNext(_ descriptor: CInt) -> Result<AcceptedSocket, NetworkFault> {
  var address = sockaddr_storage()
  let code = shim_accept(descriptor, &address)
  if code < 0 { return .failure(NetworkFault(.accept, code: code)) }
  return .success(AcceptedSocket(descriptor: code, peer: PeerAddress(address)))
}

private func acceptReady(_ handle: UnsafeMutablePointer<uv_poll_t>?, _ status: CInt, _ events: CInt) {
  guard let data = handle?.pointee.data else { return }
  Unmanaged<TCPListener>.fromOpaque(data).takeUnretainedValue().accept()
}

private func listenerClosed(_ handle: UnsafeMutablePointer<uv_handle_t>?) {
  guard let handle else { return }
  let data = handle.pointee.data
  UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_poll_t.self).deallocate()
  if let data { Unmanaged<TCPListener>.fromOpaque(data).release() }
}

/// The address of a name that is this machine, as text; nil for any other name.
///
/// Thousands of connections to `localhost` would each ask the resolver. Blocks, so at start only.
package func loopbackAddress(of host: String) -> String? {
  guard numericAddress(host, port: 0) == nil,
    let found = resolved(host, port: 0).flatMap({ PeerAddress($0) }),
    found.isLoopback
  else { return nil }
  return found.host
}

/// The first address of a name, IPv4 before IPv6; blocks, at start only.
private func resolved(_ host: String, port: UInt16) -> sockaddr_storage? {
  for family in [AF_INET, AF_INET6] {
    var hints = addrinfo()
    hints.ai_family = family
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_PASSIVE
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &list) == 0, let found = list else { continue }
    defer { freeaddrinfo(found) }
    if let address = storage(of: found.pointee) { return address }
  }
  return nil
}

/// A copy of the address in a resolver's answer.
func storage(of info: addrinfo) -> sockaddr_storage? {
  guard let address = info.ai_addr, Int(info.ai_addrlen) <= MemoryLayout<sockaddr_storage>.size else {
    return nil
  }
  var copy = sockaddr_storage()
  withUnsafeMutableBytes(of: &copy) { bytes in
    bytes.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(info.ai_addrlen)))
  }
  return copy
}

private func boundPort(of descriptor: CInt) -> UInt16 {
  var storage = sockaddr_storage()
  var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
  _ = withUnsafeMutablePointer(to: &storage) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
  }
  return PeerAddress(storage)?.port ?? 0
}
