import Bytes
import CUV
import Glibc
import Seams

/// Why a stream brings nothing more.
package enum StreamEnd: Hashable, Sendable {
  /// The peer has finished sending. The stream is still open for writing; its owner closes it.
  case endOfInput
  /// Reading or writing failed. The stream is closed.
  case fault(NetworkFault)
  /// The loop stopped. The stream is closed.
  case loopStopped
}

/// Who owns a ``TCPStream`` and hears from it, on the loop's thread.
package protocol TCPStreamDelegate: AnyObject {
  /// Bytes in the loop's shared buffer: good until the call returns.
  func received(_ bytes: UnsafeRawBufferPointer)
  /// Comes at most once, and never after `close`.
  func ended(_ reason: StreamEnd)
  /// What was queued has been written; comes only after a write that the system did not take at once.
  func writable()
}

/// What is left of a stream that leaves its loop: a descriptor, and bytes that must be written before others.
///
/// Whoever holds it owns the descriptor.
package struct DetachedSocket: Sendable {
  package let descriptor: CInt
  package let unsent: [UInt8]

  package init(descriptor: CInt, unsent: [UInt8] = []) {
    self.descriptor = descriptor
    self.unsent = unsent
  }

  /// Closes the descriptor, for when no loop takes it.
  package func discard() { Glibc.close(descriptor) }
}

/// A TCP connection on a loop.
///
/// Used on the loop's thread alone.
///
/// Holds no receive buffer of its own and no write buffer unless the system refuses bytes. The stream keeps
/// itself and its delegate alive until it is closed.
package final class TCPStream: LoopHandle {
  /// Full buffers read in a row before the other streams of the loop have their turn.
  private static let fullReadsMax = 4

  package var delegate: (any TCPStreamDelegate)?
  /// The other end, if the system knows it.
  package let peer: PeerAddress?

  private var tcp: UnsafeMutablePointer<uv_tcp_t>?
  private var request: WriteRequest?
  private var pending: OutBuffer?
  private var isReading = false
  private var fullReads = 0
  private var isFinishing = false
  private var fault: NetworkFault?

  /// Takes over a connected descriptor, and closes it when the stream closes or this throws.
  ///
  /// Reading starts with `resumeReading`.
  package init(adopting descriptor: CInt, peer: PeerAddress? = nil, on loop: EventLoop) throws(NetworkFault) {
    self.peer = peer ?? peerAddress(of: descriptor)
    super.init(on: loop)
    let handle = open()
    let code = uv_tcp_open(handle, descriptor)
    guard code == 0 else {
      Glibc.close(descriptor)
      close()
      throw NetworkFault(.adopt, code: code)
    }
    uv_tcp_nodelay(handle, 1)
  }

  /// Takes a stream over from another loop; its unsent bytes go first.
  package convenience init(
    adopting socket: DetachedSocket, peer: PeerAddress?, on loop: EventLoop
  ) throws(NetworkFault) {
    try self.init(adopting: socket.descriptor, peer: peer, on: loop)
    socket.unsent.withUnsafeBytes { write($0) }
  }

  /// A stream that a connector connects.
  init(connectingTo peer: PeerAddress?, on loop: EventLoop) {
    self.peer = peer
    super.init(on: loop)
    _ = open()
  }

  private func open() -> UnsafeMutablePointer<uv_tcp_t> {
    let handle = UnsafeMutablePointer<uv_tcp_t>.allocate(capacity: 1)
    // Makes no system call and cannot fail without flags.
    uv_tcp_init(loop.uv, handle)
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    tcp = handle
    return handle
  }

  func connect(
    _ request: UnsafeMutablePointer<uv_connect_t>, _ address: sockaddr_storage, _ done: uv_connect_cb
  )
    -> CInt
  {
    guard let tcp else { return UV_ECANCELED.rawValue }
    if let source = loop.nextLoopbackSource(for: address) {
      // What is wrong with it shows when it connects.
      _ = withSocketAddress(source) { source, _ in uv_tcp_bind(tcp, source, 0) }
    }
    let code = withSocketAddress(address) { address, _ in uv_tcp_connect(request, tcp, address, done) }
    if code == 0 { uv_tcp_nodelay(tcp, 1) }
    return code
  }

  // MARK: State

  /// Whether `close` was not called and nothing failed.
  package var isOpen: Bool { tcp != nil && fault == nil }

  /// Bytes accepted by `write` that the system has not taken.
  ///
  /// The owner closes the stream above its mark.
  package var queuedBytes: Int { inFlightBytes + (pending?.count ?? 0) }

  private var inFlightBytes: Int {
    guard request != nil, let tcp else { return 0 }
    return uv_stream_get_write_queue_size(upcastStream(tcp))
  }

  /// Gives an unacknowledged connection up after this time, for a peer that vanished.
  ///
  /// Whole milliseconds.
  package func setUserTimeout(_ timeout: Duration) {
    setOption(tcpLevel, TCP_USER_TIMEOUT, CInt(clamping: timeout.ns / 1_000_000))
  }

  /// Asks for a size of the system's send buffer, in bytes; tests use it to make queues visible.
  package func setSendBuffer(bytes: Int) {
    setOption(SOL_SOCKET, SO_SNDBUF, CInt(clamping: bytes))
  }

  private func setOption(_ level: CInt, _ name: CInt, _ value: CInt) {
    var descriptor: uv_os_fd_t = -1
    guard let tcp, uv_fileno(upcast(tcp), &descriptor) == 0 else { return }
    var value = value
    setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<CInt>.size))
  }

  // MARK: Reading

  package func resumeReading() {
    guard let tcp, !isReading, fault == nil else { return }
    isReading = true
    let code = uv_read_start(upcastStream(tcp), giveReceiveBuffer, readDone)
    if code != 0 { failLater(NetworkFault(.read, code: code)) }
  }

  /// Stops reading at once, also from within `received`: the peer is slowed down by TCP.
  package func pauseReading() {
    guard let tcp, isReading else { return }
    isReading = false
    uv_read_stop(upcastStream(tcp))
  }

  fileprivate func read(_ count: Int, _ buffer: UnsafeRawPointer?) {
    loop.beginCallback()
    tellRead(count, buffer)
    loop.readEnded()
  }

  private func tellRead(_ count: Int, _ buffer: UnsafeRawPointer?) {
    // A write has failed and is about to be reported; what a read says then is only its echo.
    guard fault == nil else { return }
    if count > 0 {
      giveWay(after: count)
      delegate?.received(UnsafeRawBufferPointer(start: buffer, count: count))
    } else if count == Int(UV_EOF.rawValue) {
      isReading = false
      delegate?.ended(.endOfInput)
    } else if count < 0 {
      fail(NetworkFault(.read, code: CInt(clamping: count)))
    }
  }

  /// Keeps a loud peer from holding the loop: libuv alone would read up to 32 buffers of it in a row.
  private func giveWay(after count: Int) {
    fullReads = count == EventLoop.receiveBytesMax ? fullReads + 1 : 0
    guard fullReads >= Self.fullReadsMax, let tcp, isReading else { return }
    fullReads = 0
    uv_read_stop(upcastStream(tcp))
    loop.later { [self] in
      guard let tcp = self.tcp, isReading, fault == nil else { return }
      // Harmless when it reads already, after a pause and a resume.
      uv_read_start(upcastStream(tcp), giveReceiveBuffer, readDone)
    }
  }

  // MARK: Writing

  /// Writes at once what the system takes and queues a copy of the rest, without a bound of its own.
  ///
  /// A failure is reported by `ended`, after the current callback.
  package func write(_ bytes: UnsafeRawBufferPointer) {
    guard let tcp, let base = bytes.baseAddress, !bytes.isEmpty, fault == nil, !isFinishing else { return }
    var sent = 0
    if request == nil {
      var buffer = uv_buf_t(
        base: UnsafeMutableRawPointer(mutating: base).assumingMemoryBound(to: CChar.self), len: bytes.count)
      let code = uv_try_write(upcastStream(tcp), &buffer, 1)
      if code >= 0 {
        sent = Int(code)
      } else if code != UV_EAGAIN.rawValue {
        failLater(NetworkFault(.write, code: code))
        return
      }
    }
    guard sent < bytes.count else { return }
    let rest = pending ?? OutBuffer()
    pending = rest
    rest.append(UnsafeRawBufferPointer(rebasing: bytes[sent...]))
    if request == nil { writePending(rest, to: tcp) }
  }

  private func writePending(_ bytes: OutBuffer, to tcp: UnsafeMutablePointer<uv_tcp_t>) {
    pending = nil
    let next = WriteRequest(bytes, of: self)
    let code = next.start(upcastStream(tcp))
    if code == 0 { request = next } else { failLater(NetworkFault(.write, code: code)) }
  }

  fileprivate func written(_ status: CInt) {
    loop.beginCallback()
    request = nil
    guard let tcp, fault == nil else { return }
    guard status == 0 else {
      fail(NetworkFault(.write, code: status))
      return
    }
    if let pending {
      writePending(pending, to: tcp)
      return
    }
    if isFinishing { shutDown() }
    delegate?.writable()
  }

  /// Sends FIN once all that was written has left.
  ///
  /// Later writes are dropped; reading goes on.
  package func finishWriting() {
    guard tcp != nil, !isFinishing, fault == nil else { return }
    isFinishing = true
    if request == nil { shutDown() }
  }

  private func shutDown() {
    var descriptor: uv_os_fd_t = -1
    guard let tcp, uv_fileno(upcast(tcp), &descriptor) == 0 else { return }
    Glibc.shutdown(descriptor, CInt(SHUT_WR))
  }

  // MARK: Ending

  /// Closes at once; what is queued is dropped.
  ///
  /// The delegate hears nothing more. Harmless when repeated.
  package func close() {
    guard let tcp else { return }
    self.tcp = nil
    delegate = nil
    pending = nil
    uv_close(upcast(tcp), streamClosed)
  }

  /// Closes with RST, so that the peer learns at once that the connection is dead.
  package func closeReset() {
    guard let tcp else { return }
    setOption(SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
    _ = tcp
    close()
  }

  private func setOption(_ level: CInt, _ name: CInt, _ value: linger) {
    var descriptor: uv_os_fd_t = -1
    guard let tcp, uv_fileno(upcast(tcp), &descriptor) == 0 else { return }
    var value = value
    setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<linger>.size))
  }

  /// Takes the connection off the loop, so that another can go on with it; this stream is closed.
  ///
  /// Bytes not yet read stay in the system. Pause reading first when called outside `received`.
  /// - Returns: nil when the stream is closed or no descriptor is left; then nothing has changed.
  package func detach() -> DetachedSocket? {
    var descriptor: uv_os_fd_t = -1
    guard let tcp, fault == nil, !isFinishing, uv_fileno(upcast(tcp), &descriptor) == 0 else { return nil }
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { return nil }
    var unsent: [UInt8] = []
    if let request { unsent.append(contentsOf: request.bytes.bytes.suffix(inFlightBytes)) }
    if let pending { unsent.append(contentsOf: pending.bytes) }
    close()
    return DetachedSocket(descriptor: copy, unsent: unsent)
  }

  private func fail(_ fault: NetworkFault) {
    guard tcp != nil else { return }
    self.fault = fault
    let delegate = delegate
    close()
    delegate?.ended(.fault(fault))
  }

  private func failLater(_ fault: NetworkFault) {
    guard self.fault == nil else { return }
    self.fault = fault
    loop.later { self.fail(fault) }
  }

  override func loopStops() {
    let delegate = delegate
    close()
    delegate?.ended(.loopStopped)
  }
}

/// Bytes on their way, kept until libuv is done with them.
private final class WriteRequest {
  let bytes: OutBuffer
  private let stream: TCPStream
  private let request = UnsafeMutablePointer<uv_write_t>.allocate(capacity: 1)

  init(_ bytes: OutBuffer, of stream: TCPStream) {
    self.bytes = bytes
    self.stream = stream
  }

  deinit { request.deallocate() }

  func start(_ handle: UnsafeMutablePointer<uv_stream_t>) -> CInt {
    let held = bytes.bytes
    var buffer = uv_buf_t(
      base: UnsafeMutableRawPointer(mutating: held.baseAddress)?.assumingMemoryBound(to: CChar.self),
      len: held.count)
    let reference = Unmanaged.passRetained(self)
    request.pointee.data = reference.toOpaque()
    let code = uv_write(request, handle, &buffer, 1, writeDone)
    if code != 0 { reference.release() }
    return code
  }

  func done(_ status: CInt) { stream.written(status) }
}

private let tcpLevel = CInt(IPPROTO_TCP)

private func peerAddress(of descriptor: CInt) -> PeerAddress? {
  var storage = sockaddr_storage()
  var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
  let code = withUnsafeMutablePointer(to: &storage) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
  }
  return code == 0 ? PeerAddress(storage) : nil
}

private func giveReceiveBuffer(
  _ handle: UnsafeMutablePointer<uv_handle_t>?, _ suggested: Int, _ buffer: UnsafeMutablePointer<uv_buf_t>?
) {
  guard let data = handle?.pointee.data, let buffer else { return }
  Unmanaged<TCPStream>.fromOpaque(data)._withUnsafeGuaranteedRef { stream in
    buffer.pointee.base = stream.loop.receiveBuffer.assumingMemoryBound(to: CChar.self)
    buffer.pointee.len = EventLoop.receiveBytesMax
  }
}

private func readDone(
  _ handle: UnsafeMutablePointer<uv_stream_t>?, _ count: Int, _ buffer: UnsafePointer<uv_buf_t>?
) {
  guard let data = handle?.pointee.data else { return }
  let stream = Unmanaged<TCPStream>.fromOpaque(data).takeUnretainedValue()
  stream.read(count, UnsafeRawPointer(buffer?.pointee.base))
}

private func writeDone(_ request: UnsafeMutablePointer<uv_write_t>?, _ status: CInt) {
  guard let data = request?.pointee.data else { return }
  Unmanaged<WriteRequest>.fromOpaque(data).takeRetainedValue().done(status)
}

private func streamClosed(_ handle: UnsafeMutablePointer<uv_handle_t>?) {
  guard let handle else { return }
  let data = handle.pointee.data
  UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_tcp_t.self).deallocate()
  if let data { Unmanaged<TCPStream>.fromOpaque(data).release() }
}
