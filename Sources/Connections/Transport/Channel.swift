import Bytes
package import EventLoops
import Glibc
package import Seams
package import TLSCore

/// One connection of bytes, over TLS or plain TCP, on a loop.
///
/// What is sent in a round leaves in one TLS write and one system call at its end. A channel that has nothing to
/// write holds no buffer. Everything is called on the loop's thread, which changes only by `move`. The connection
/// keeps its channel alive, and the channel its delegate, until `ended` was called.
package final class Channel {
  enum Phase { case opening, open, moving, closing, closed }

  /// Plaintext turned into records before the system is asked to take them.
  private static var pieceBytesMax: Int { 256 * 1024 }
  /// Pieces of one channel in a row, so that the others have their turn.
  private static var piecesMax: Int { 4 }

  /// Where the channel lives now.
  package private(set) var loop: any Loop
  package var delegate: (any ChannelDelegate)?
  /// What the peer is to be known by.
  package let peer: PeerAddress?
  /// What TLS has agreed on; nil on a plain channel.
  package let tls: TLSSession?
  /// Bytes that may wait for a slow peer before the channel gives it up.
  package var backlogBytesMax = 1 << 20
  /// When bytes of the peer came last before the channel was open; when it was made, if none did.
  package private(set) var heardAt: Moment
  /// Whether the channel flushes and closes when the peer has sent its last byte, or asks its delegate.
  package var closesOnInputEnd = true

  private var shared: ChannelLoop
  private var stream: (any ByteStream)?
  private(set) var phase = Phase.opening
  private var out: OutBuffer?
  private var carried: OutBuffer?
  private var movement: Movement?
  private var closing: Closing?
  /// Things to be sent since the last flush; with one the channel stands on the list to be flushed.
  private var sends = 0
  private var isBlocked = false
  private var isReadingPaused = false
  private var hasPeerEnded = false

  private struct Movement {
    let target: any Loop
    let then: @Sendable (Channel) -> Void
  }

  private struct Closing {
    var reason: ChannelEnd
    var deadline: LoopTimer
    var hasFinished = false
  }

  /// A channel over a connected stream; nothing happens before `start`.
  ///
  /// Start it or abort it: else the connection stays until the loop stops.
  package init(_ stream: any ByteStream, tls: TLSSession? = nil) {
    loop = stream.home
    peer = stream.peer
    self.tls = tls
    self.stream = stream
    heardAt = stream.home.now
    shared = ChannelLoop.of(stream.home)
  }

  /// Begins: the handshake, or `opened` at once (in this round) on a plain channel.
  ///
  /// Set the delegate first.
  package func start() {
    guard phase == .opening, let stream else { return }
    stream.delegate = self
    if tls == nil {
      loop.later { [self] in
        guard phase == .opening else { return }
        open()
        if phase == .open, !isReadingPaused { stream.resumeReading() }
      }
    } else {
      stream.resumeReading()
      markDirty()
    }
  }

  private func open() {
    guard phase == .opening else { return }
    phase = .open
    delegate?.opened()
    if out != nil { markDirty() }
  }

  // MARK: State

  /// Whether bytes can be exchanged.
  package var isOpen: Bool { phase == .open || phase == .moving }

  /// Bytes accepted by `send` that the system has not taken.
  package var queuedBytes: Int { (out?.count ?? 0) + (stream?.queuedBytes ?? 0) }

  /// See ``TCPStream/setUserTimeout(_:)``.
  package func setUserTimeout(_ timeout: Duration) { stream?.setUserTimeout(timeout) }

  /// See ``TCPStream/setSendBuffer(bytes:)``.
  package func setSendBuffer(bytes: Int) { stream?.setSendBuffer(bytes: bytes) }

  // MARK: Sending

  /// Takes bytes to be sent at the round's end, or once the channel is open.
  ///
  /// Dropped after `close`.
  package func send(_ bytes: UnsafeRawBufferPointer) {
    guard let out = outputBuffer(), !bytes.isEmpty else { return }
    out.append(bytes)
    markDirty()
  }

  package func send(_ bytes: [UInt8]) { bytes.withUnsafeBytes { send($0) } }

  package func send(_ literal: StaticString) { literal.withUTF8Buffer { send(UnsafeRawBufferPointer($0)) } }

  /// Lets `fill` write at most `count` bytes straight into the output; it returns how many it wrote.
  package func send(reserving count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) {
    guard let out = outputBuffer() else { return }
    out.append(reserving: count, fill)
    markDirty()
  }

  private func outputBuffer() -> OutBuffer? {
    guard phase == .opening || phase == .open || phase == .moving else { return nil }
    if let out { return out }
    let taken = shared.takeBuffer()
    out = taken
    return taken
  }

  private func markDirty() {
    guard phase != .closed else { return }
    sends += 1
    if sends == 1 { shared.add(self) } else if sends == 2 { shared.countJoined() }
  }

  /// The round's end: one TLS write, one socket write.
  func flush() {
    sends = 0
    guard let stream, phase != .closed else { return }
    if let tls, tls.state == .handshaking {
      tls.start(shared.scratch)
      writeRecords(to: stream)
      checkBacklog()
      if let closing, out == nil || hasPeerEnded { finish(closing.reason) }
      return
    }
    writeOut(to: stream)
    if phase == .moving {
      depart(stream)
    } else if phase == .closing, out == nil {
      finishSending(stream)
    }
  }

  private func writeOut(to stream: any ByteStream) {
    var pieces = 0
    while let out, !out.isEmpty, stream.queuedBytes == 0, stream.isOpen {
      guard pieces < Self.piecesMax else {
        // A channel that leaves takes the rest along: nothing here may remember it.
        if phase != .moving { markDirty() }
        return
      }
      pieces += 1
      let count = min(out.count, Self.pieceBytesMax)
      let piece = UnsafeRawBufferPointer(rebasing: out.bytes[..<count])
      if let tls {
        let isTaken = tls.send(piece, shared.scratch)
        writeRecords(to: stream)
        guard isTaken else {
          if case .failed(let fault) = tls.state { fail(.tls(fault), stream) } else { giveBackOutput() }
          return
        }
      } else {
        stream.write(piece)
      }
      out.removeFirst(count)
    }
    if out?.isEmpty ?? true {
      giveBackOutput()
      let isWaiting = stream.queuedBytes > 0
      if isBlocked, !isWaiting, phase == .open {
        loop.later { [weak self] in self?.tellWritable() }
      }
      isBlocked = isWaiting
    } else {
      isBlocked = true
    }
    checkBacklog()
  }

  private func writeRecords(to stream: any ByteStream) {
    let output = shared.scratch.output
    guard !output.isEmpty else { return }
    stream.write(output.bytes)
    output.removeAll()
  }

  private func tellWritable() {
    if phase == .open { delegate?.writable() }
  }

  private func checkBacklog() {
    let waiting = queuedBytes
    guard waiting > backlogBytesMax, phase != .closed else { return }
    finish(.backlog(bytes: waiting), isReset: true)
  }

  private func giveBackOutput() {
    guard let buffer = out else { return }
    out = nil
    shared.giveBack(buffer)
  }

  // MARK: Reading

  /// Stops reading; what was read may still be delivered, and `writable` comes once what is to be sent was taken.
  package func pauseReading() {
    isReadingPaused = true
    if out != nil { isBlocked = true }
    if phase == .open { stream?.pauseReading() }
  }

  package func resumeReading() {
    isReadingPaused = false
    if phase == .open, !hasPeerEnded { stream?.resumeReading() }
  }

  private func deliver(_ plaintext: UnsafeRawBufferPointer) {
    switch phase {
    case .open: delegate?.received(plaintext)
    case .moving: carry(plaintext)
    case .opening, .closing, .closed: break
    }
  }

  private func carry(_ plaintext: UnsafeRawBufferPointer) {
    guard !plaintext.isEmpty else { return }
    let buffer = carried ?? OutBuffer()
    carried = buffer
    buffer.append(plaintext)
  }

  private func receivedRecords(_ bytes: UnsafeRawBufferPointer, _ tls: TLSSession, _ stream: any ByteStream) {
    // After a fault the channel lingers only so that the peer can read the alert.
    if case .failed = tls.state { return }
    let wasOpening = phase == .opening
    if wasOpening { heardAt = loop.now }
    tls.receive(
      bytes, shared.scratch,
      opened: {
        open()
        if phase == .open, isReadingPaused { stream.pauseReading() }
        if phase == .closing { markDirty() }
      },
      sink: { deliver($0) })
    if wasOpening { sendFirstWords(tls) }
    if stream.isOpen { writeRecords(to: stream) } else { shared.scratch.output.removeAll() }
    checkTLS(tls, stream)
  }

  /// What is said as soon as the channel is open leaves in one write with the end of the handshake.
  private func sendFirstWords(_ tls: TLSSession) {
    guard phase == .open, let out, !out.isEmpty, out.count <= Self.pieceBytesMax,
      tls.send(out.bytes, shared.scratch)
    else { return }
    out.removeFirst(out.count)
  }

  /// Acts on what the last bytes did to the session; while moving, that waits for the new loop.
  private func checkTLS(_ tls: TLSSession, _ stream: any ByteStream) {
    guard phase != .closed, phase != .moving else { return }
    switch tls.state {
    case .handshaking, .open: break
    case .peerClosed: peerEnded(isClean: true, stream)
    case .failed(let fault):
      if let reply = fault.plaintextReply {
        reply.withUTF8Buffer { stream.write(UnsafeRawBufferPointer($0)) }
      }
      fail(.tls(fault), stream)
    }
  }

  private func peerEnded(isClean: Bool, _ stream: any ByteStream) {
    guard !hasPeerEnded else { return }
    hasPeerEnded = true
    switch phase {
    case .open where !closesOnInputEnd && isClean: delegate?.inputEnded()
    case .open where isClean: beginClosing(.peerClosed(isClean: true), within: .seconds(2), stream)
    case .opening, .open: finish(.peerClosed(isClean: isClean))
    case .closing: markDirty()
    case .moving, .closed: break
    }
  }

  // MARK: Ending

  /// Flushes, says goodbye (close_notify, FIN) and closes when the peer has done so too, or after `timeout`.
  ///
  /// `ended` follows. Nothing more is received. Harmless when repeated.
  package func close(flushing timeout: Duration = .seconds(2)) {
    switch phase {
    case .closing, .closed: return
    case .opening, .open, .moving:
      guard let stream else { return }
      movement = nil
      beginClosing(.closed, within: timeout, stream)
    }
  }

  /// Closes at once with RST; what waits is dropped.
  ///
  /// `ended(.aborted)` follows.
  package func abort() { finish(.aborted, isReset: true) }

  private func beginClosing(_ reason: ChannelEnd, within timeout: Duration, _ stream: any ByteStream) {
    phase = .closing
    carried = nil
    stream.delegate = self
    closing = Closing(
      reason: reason, deadline: loop.after(timeout) { [weak self] in self?.finish(reason) })
    if !hasPeerEnded { stream.resumeReading() }
    markDirty()
  }

  /// Nothing of ours is left to be encrypted: FIN after the last byte, and the end when the peer's was seen.
  private func finishSending(_ stream: any ByteStream) {
    guard var closing else { return }
    if !closing.hasFinished {
      closing.hasFinished = true
      self.closing = closing
      if let tls {
        tls.closeNotify(shared.scratch)
        writeRecords(to: stream)
      }
      stream.finishWriting()
    }
    if hasPeerEnded, stream.queuedBytes == 0 { finish(closing.reason) }
  }

  /// Ends with a fault, and lingers so that the peer gets the alert before a reset could destroy it.
  private func fail(_ reason: ChannelEnd, _ stream: any ByteStream) {
    guard phase != .closed else { return }
    if phase == .closing {
      finish(reason)
      return
    }
    giveBackOutput()
    beginClosing(reason, within: .seconds(2), stream)
    tellEnd(reason)
  }

  private func finish(_ reason: ChannelEnd, isReset: Bool = false) {
    guard phase != .closed else { return }
    phase = .closed
    closing?.deadline.cancel()
    closing = nil
    movement = nil
    carried = nil
    giveBackOutput()
    if isReset { stream?.closeReset() } else { stream?.close() }
    stream = nil
    tellEnd(reason)
  }

  private func tellEnd(_ reason: ChannelEnd) {
    guard let told = delegate else { return }
    delegate = nil
    loop.later { told.ended(reason) }
  }

  // MARK: Moving

  /// Hands an open channel to another loop, at the end of this round.
  ///
  /// May be called from within `received`. Order is kept and nothing lost: plaintext not given to the delegate yet
  /// comes after `unread`, what was sent stays in order. Then either `then` runs on `target`, which sets a delegate
  /// for that loop, or `ended` comes on this one. Until then the channel may still be sent to from here; after
  /// this round it must not be touched here.
  ///
  /// - Parameter unread: The end of what the delegate was given, which the next one is to get again.
  /// - Returns: false, with no effect, unless the channel is open.
  @discardableResult
  package func move(
    to target: any Loop, unread: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
    then: @escaping @Sendable (Channel) -> Void
  ) -> Bool {
    loop.assertCurrent()
    guard phase == .open, let stream else { return false }
    phase = .moving
    stream.pauseReading()
    carry(unread)
    movement = Movement(target: target, then: then)
    markDirty()
    return true
  }

  private func depart(_ stream: any ByteStream) {
    guard let movement, phase == .moving, stream.isOpen else { return }
    self.movement = nil
    // What flush marked again goes with the channel.
    guard movement.target !== loop else {
      arrive(stream, movement.then)
      return
    }
    guard let socket = stream.leave() else {
      finish(.network(NetworkFault(.adopt, code: -EMFILE)))
      return
    }
    self.stream = nil
    let handover = Handover(self)
    let target = movement.target
    let then = movement.then
    let isComing = target.submit { handover.value.arrive(socket, on: target, then) }
    if !isComing {
      socket.discard()
      finish(.loopStopped)
    }
  }

  private func arrive(_ socket: any DetachedStream, on target: any Loop, _ then: @Sendable (Channel) -> Void)
  {
    loop = target
    shared = ChannelLoop.of(target)
    sends = 0
    do throws(NetworkFault) {
      let adopted = try socket.attach(to: target, peer: peer)
      adopted.delegate = self
      stream = adopted
      arrive(adopted, then)
    } catch {
      then(self)
      finish(.network(error))
    }
  }

  private func arrive(_ stream: any ByteStream, _ then: @Sendable (Channel) -> Void) {
    phase = .open
    then(self)
    if let carried, phase == .open {
      self.carried = nil
      delegate?.received(carried.bytes)
    }
    if let tls { checkTLS(tls, stream) }
    if hasPeerEnded, phase == .open, tls == nil {
      hasPeerEnded = false
      peerEnded(isClean: true, stream)
    }
    if phase == .open, !isReadingPaused, !hasPeerEnded { stream.resumeReading() }
    if out != nil || stream.queuedBytes > 0 {
      isBlocked = true
      markDirty()
    }
  }
}

// What the channel hears from its stream.
extension Channel: TCPStreamDelegate {
  package func received(_ bytes: UnsafeRawBufferPointer) {
    guard let stream else { return }
    if let tls { receivedRecords(bytes, tls, stream) } else { deliver(bytes) }
  }

  package func writable() {
    if out != nil || phase == .closing {
      markDirty()
    } else if isBlocked {
      isBlocked = false
      tellWritable()
    }
  }

  package func ended(_ reason: StreamEnd) {
    guard let stream else { return }
    switch reason {
    case .endOfInput:
      let isClean = tls == nil || tls?.state == .peerClosed
      if phase == .moving, !isClean { finish(.peerClosed(isClean: false)) }
      peerEnded(isClean: isClean, stream)
    case .fault(let fault):
      finish(closing.map { $0.hasFinished ? $0.reason : .network(fault) } ?? .network(fault))
    case .loopStopped: finish(.loopStopped)
    }
  }
}
