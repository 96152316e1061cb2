import CUV
import Glibc
import Seams

/// One attempt to connect to a host by name or address, over all its addresses in the resolver's order.
///
/// Made by `connect`; keeps itself alive until it is done. On the loop's thread alone.
package final class TCPConnector {
  /// What one address gets at least while others are left to try.
  private static var attemptMin: Duration { .milliseconds(250) }

  private let loop: EventLoop
  private let port: UInt16
  private var completion: ((Result<TCPStream, NetworkFault>) -> Void)?
  private let deadline: Moment
  private var addresses: [sockaddr_storage] = []
  private var next = 0
  private var stream: TCPStream?
  private var timer: LoopTimer?
  private var attemptTimer: LoopTimer?
  private var lastFault = NetworkFault(.resolve, code: UV_EAI_NONAME.rawValue)
  private var resolution: UnsafeMutablePointer<uv_getaddrinfo_t>?

  /// Connects; the resolver runs on another thread.
  ///
  /// - Parameters:
  ///   - timeout: For all of it. An address that does not answer gets its share, so that the next is tried.
  ///   - completion: Called once, on the loop, never before `connect` returns. The stream does not read yet.
  @discardableResult
  package static func connect(
    host: String, port: UInt16, timeout: Duration, on loop: EventLoop,
    completion: @escaping (Result<TCPStream, NetworkFault>) -> Void
  ) -> TCPConnector {
    loop.assertCurrent()
    let connector = TCPConnector(port: port, timeout: timeout, on: loop, completion: completion)
    connector.start(host)
    return connector
  }

  private init(
    port: UInt16, timeout: Duration, on loop: EventLoop,
    completion: @escaping (Result<TCPStream, NetworkFault>) -> Void
  ) {
    self.loop = loop
    self.port = port
    self.completion = completion
    deadline = loop.now + timeout
  }

  /// Gives up; the completion hears `isCancelled`.
  ///
  /// Harmless when done.
  package func cancel() { finish(.failure(NetworkFault(.connect, code: UV_ECANCELED.rawValue))) }

  private func start(_ host: String) {
    loop.resolving[ObjectIdentifier(self)] = self
    timer = loop.after(deadline - loop.now) { [weak self] in
      self?.finish(.failure(NetworkFault(.connect, code: UV_ETIMEDOUT.rawValue)))
    }
    if let address = numericAddress(host, port: port) {
      addresses = [address]
      loop.later { self.tryNext() }
      return
    }
    var hints = addrinfo()
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    let request = UnsafeMutablePointer<uv_getaddrinfo_t>.allocate(capacity: 1)
    let reference = Unmanaged.passRetained(self)
    request.pointee.data = reference.toOpaque()
    let code = uv_getaddrinfo(loop.uv, request, resolverAnswered, host, String(port), &hints)
    if code == 0 {
      resolution = request
    } else {
      reference.release()
      request.deallocate()
      loop.later { self.finish(.failure(NetworkFault(.resolve, code: code))) }
    }
  }

  fileprivate func answered(_ status: CInt, _ list: UnsafeMutablePointer<addrinfo>?) {
    loop.beginCallback()
    resolution = nil
    guard completion != nil else { return }
    guard status == 0 else {
      finish(.failure(NetworkFault(.resolve, code: status)))
      return
    }
    var entry = list
    while let info = entry, addresses.count < 16 {
      if let address = storage(of: info.pointee) { addresses.append(address) }
      entry = info.pointee.ai_next
    }
    tryNext()
  }

  private func tryNext() {
    attemptTimer?.cancel()
    stream?.close()
    stream = nil
    guard completion != nil else { return }
    guard next < addresses.count, !loop.isStopping else {
      finish(.failure(lastFault))
      return
    }
    let address = addresses[next]
    next += 1
    let attempt = TCPStream(connectingTo: PeerAddress(address), on: loop)
    stream = attempt
    let request = ConnectRequest(attempt) { [weak self] in self?.attempted(attempt, $0) }
    if next < addresses.count {
      let share = max(Self.attemptMin, (deadline - loop.now) / (addresses.count - next + 1))
      attemptTimer = loop.after(share) { [weak self] in
        self?.attempted(attempt, UV_ETIMEDOUT.rawValue)
      }
    }
    let code = request.start(address)
    if code != 0 { loop.later { self.attempted(attempt, code) } }
  }

  private func attempted(_ attempt: TCPStream, _ status: CInt) {
    guard attempt === stream, completion != nil else { return }
    if status == 0 {
      stream = nil
      finish(.success(attempt))
    } else {
      lastFault = NetworkFault(.connect, code: status)
      tryNext()
    }
  }

  private func finish(_ result: Result<TCPStream, NetworkFault>) {
    guard let completion else { return }
    self.completion = nil
    loop.resolving[ObjectIdentifier(self)] = nil
    timer?.cancel()
    attemptTimer?.cancel()
    stream?.close()
    stream = nil
    if let resolution {
      uv_cancel(
        UnsafeMutableRawPointer(resolution).assumingMemoryBound(to: uv_req_t.self))
    }
    loop.later { completion(result) }
  }
}

/// One connect call of libuv, kept until its callback.
private final class ConnectRequest {
  private let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
  private let stream: TCPStream
  private let done: (CInt) -> Void

  init(_ stream: TCPStream, _ done: @escaping (CInt) -> Void) {
    self.stream = stream
    self.done = done
  }

  deinit { request.deallocate() }

  func start(_ address: sockaddr_storage) -> CInt {
    let reference = Unmanaged.passRetained(self)
    request.pointee.data = reference.toOpaque()
    let code = stream.connect(request, address, connectDone)
    if code != 0 { reference.release() }
    return code
  }

  func finished(_ status: CInt) {
    stream.loop.beginCallback()
    done(status)
  }
}

private func connectDone(_ request: UnsafeMutablePointer<uv_connect_t>?, _ status: CInt) {
  guard let data = request?.pointee.data else { return }
  Unmanaged<ConnectRequest>.fromOpaque(data).takeRetainedValue().finished(status)
}

private func resolverAnswered(
  _ request: UnsafeMutablePointer<uv_getaddrinfo_t>?, _ status: CInt, _ list: UnsafeMutablePointer<addrinfo>?
) {
  guard let request else { return }
  let data = request.pointee.data
  request.deallocate()
  if let data { Unmanaged<TCPConnector>.fromOpaque(data).takeRetainedValue().answered(status, list) }
  if let list { uv_freeaddrinfo(list) }
}
