package import EventLoops

/// The end of a ``BytePipe`` that a ``Channel`` is made of.
///
/// Used on its loop's thread alone. It keeps itself and its delegate alive until it is closed or leaves.
package final class PipeStream: ByteStream {
  package let home: any Loop
  package let peer: PeerAddress?
  package var delegate: (any TCPStreamDelegate)?
  package private(set) var isOpen = true
  private let pipe: BytePipe
  private var isReading = false
  private var isBlocked = false

  package init(_ pipe: BytePipe, peer: PeerAddress?, on loop: any Loop) {
    home = loop
    self.peer = peer
    self.pipe = pipe
    let handover = Handover(self)
    isBlocked = pipe.queuedBytes > 0
    pipe.attach { loop.submit { handover.value.woken() } }
  }

  package var queuedBytes: Int { pipe.queuedBytes }

  /// The carrier's connection has its own.
  package func setUserTimeout(_ timeout: Duration) {}
  package func setSendBuffer(bytes: Int) {}

  // MARK: Reading

  package func resumeReading() {
    guard isOpen, !isReading else { return }
    isReading = true
    home.later { [self] in read() }
  }

  package func pauseReading() { isReading = false }

  private func woken() {
    guard isOpen else { return }
    pipe.look()
    if isBlocked, pipe.queuedBytes == 0 {
      isBlocked = false
      delegate?.writable()
    }
    read()
    guard isOpen, pipe.isBroken else { return }
    let told = delegate
    close()
    told?.ended(.fault(.reset))
  }

  private func read() {
    guard isOpen, isReading else { return }
    let (bytes, isLast) = pipe.takeInbound()
    if !bytes.isEmpty { bytes.withUnsafeBytes { delegate?.received($0) } }
    guard isOpen, isReading, isLast else { return }
    isReading = false
    delegate?.ended(.endOfInput)
  }

  // MARK: Writing

  package func write(_ bytes: UnsafeRawBufferPointer) {
    guard isOpen, !bytes.isEmpty else { return }
    isBlocked = true
    pipe.write(bytes)
  }

  package func finishWriting() {
    if isOpen { pipe.end(.finished) }
  }

  // MARK: Ending

  package func close() {
    guard isOpen else { return }
    isOpen = false
    delegate = nil
    pipe.detach()
    pipe.end(.closed)
  }

  package func closeReset() { close() }

  package func leave() -> (any DetachedStream)? {
    guard isOpen else { return nil }
    isOpen = false
    delegate = nil
    pipe.detach()
    return DetachedPipe(pipe: pipe)
  }
}

/// A pipe whose stream has left one loop and not come to another.
private struct DetachedPipe: DetachedStream {
  let pipe: BytePipe

  func attach(to loop: any Loop, peer: PeerAddress?) throws(NetworkFault) -> any ByteStream {
    PipeStream(pipe, peer: peer, on: loop)
  }

  func discard() { pipe.end(.closed) }
}
