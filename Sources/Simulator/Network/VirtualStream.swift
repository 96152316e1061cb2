import EventLoops
import Seams

/// A loop's side of a virtual connection.
final class VirtualStream: ByteStream {
  let endpoint: Endpoint
  private let loop: VirtualLoop
  var delegate: (any TCPStreamDelegate)?
  let peer: PeerAddress? = nil
  private(set) var isOpen = true
  private var isReading = false
  private var isFinishing = false
  private var isWakeDue = false
  private var endTold = false
  private var pending: [UInt8] = []
  /// Since when the system refuses bytes; kept until a write finds that it has taken all for some time.
  ///
  /// What a channel kept back meanwhile follows a few rounds after.
  private var blockedSince: Int64?
  private var freeSince: Int64 = -1
  private var fault: NetworkFault?

  init(_ endpoint: Endpoint, on loop: VirtualLoop) {
    self.endpoint = endpoint
    self.loop = loop
    endpoint.stream = self
    loop.add(self)
  }

  var home: any Loop { loop }
  var queuedBytes: Int { pending.count }

  func setUserTimeout(_ timeout: Duration) { endpoint.userTimeoutNs = timeout.ns }
  func setSendBuffer(bytes: Int) { endpoint.capacity = bytes }

  // MARK: Reading

  func resumeReading() {
    guard isOpen, !isReading else { return }
    isReading = true
    wake()
  }

  func pauseReading() { isReading = false }

  /// Something came, or may be read now.
  func wake() {
    guard isOpen, !isWakeDue else { return }
    isWakeDue = true
    loop.input { [self] in
      isWakeDue = false
      read()
    }
  }

  private func read() {
    guard isOpen, isReading, fault == nil else { return }
    if endpoint.isReset { return fail(.reset) }
    if endpoint.unreadCount > 0 {
      let network = endpoint.network
      let (bytes, stamp) = endpoint.read(endpoint.slowness?.bytes ?? network.readSize())
      network.stamp = stamp
      bytes.withUnsafeBytes { delegate?.received($0) }
      guard isOpen, isReading else { return }
      if let slowness = endpoint.slowness {
        isWakeDue = true
        loop.world.after(slowness.pause) { [self] in
          isWakeDue = false
          wake()
        }
        return
      }
    }
    if endpoint.unreadCount > 0 { return wake() }
    if endpoint.hasEnded, !endTold {
      endTold = true
      isReading = false
      delegate?.ended(.endOfInput)
    }
  }

  // MARK: Writing

  func write(_ bytes: UnsafeRawBufferPointer) {
    guard isOpen, fault == nil, !isFinishing, !bytes.isEmpty else { return }
    if endpoint.isReset {
      fault = .reset
      loop.later { [self] in
        fault = nil
        fail(.reset)
      }
      return
    }
    let now = loop.world.now
    if blockedSince != nil, pending.isEmpty, freeSince + 50_000_000 < now { blockedSince = nil }
    var sent = 0
    if pending.isEmpty { sent = endpoint.send(bytes, stamp: blockedSince ?? now) }
    guard sent < bytes.count else { return }
    if blockedSince == nil { blockedSince = now }
    pending.append(contentsOf: bytes[sent...])
  }

  /// The peer has read something: more may go.
  func roomMade() {
    guard isOpen, !pending.isEmpty else { return }
    let sent = pending.withUnsafeBytes { endpoint.send($0, stamp: blockedSince ?? loop.world.now) }
    pending.removeFirst(sent)
    guard pending.isEmpty else { return }
    freeSince = loop.world.now
    if isFinishing { endpoint.sendEnd() }
    loop.input { [self] in
      if isOpen, pending.isEmpty { delegate?.writable() }
    }
  }

  func finishWriting() {
    guard isOpen, !isFinishing else { return }
    isFinishing = true
    if pending.isEmpty { endpoint.sendEnd() }
  }

  // MARK: Ending

  func close() { close(reset: false) }
  func closeReset() { close(reset: true) }

  private func close(reset: Bool) {
    guard isOpen else { return }
    isOpen = false
    delegate = nil
    pending = []
    loop.remove(self)
    endpoint.close(reset: reset)
  }

  private func fail(_ fault: NetworkFault) {
    guard isOpen else { return }
    let delegate = delegate
    close(reset: true)
    delegate?.ended(.fault(fault))
  }

  func loopStops() {
    let delegate = delegate
    close()
    delegate?.ended(.loopStopped)
  }

  func leave() -> (any DetachedStream)? {
    guard isOpen, fault == nil, !isFinishing, !endpoint.isReset else { return nil }
    isOpen = false
    delegate = nil
    loop.remove(self)
    endpoint.stream = nil
    return Detached(endpoint: endpoint, unsent: pending)
  }

  // Sendable by argument: as ``World``.
  struct Detached: DetachedStream, @unchecked Sendable {
    let endpoint: Endpoint
    let unsent: [UInt8]

    func attach(to loop: any Loop, peer: PeerAddress?) throws(NetworkFault) -> any ByteStream {
      guard let loop = loop as? VirtualLoop, !loop.isStopped else {
        discard()
        throw NetworkFault.loopStopped
      }
      let stream = VirtualStream(endpoint, on: loop)
      unsent.withUnsafeBytes { stream.write($0) }
      return stream
    }

    func discard() { endpoint.close(reset: true) }
  }
}
