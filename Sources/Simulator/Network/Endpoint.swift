import EventLoops
import Seams

/// One end of a virtual connection, as a system's socket is: it outlives the stream object that a loop has of it.
///
/// Order is kept within a connection and nowhere else. A sender may have ``capacity`` bytes out that its peer has
/// not read; the rest waits with the stream, as it does when a system refuses bytes.
final class Endpoint {
  struct Segment {
    var bytes: [UInt8]
    /// When the first of the bytes could have been written, had the way been free.
    var stamp: Int64
    var isEnd = false
    var isReset = false
  }

  let number: Int
  let network: VirtualNetwork
  /// Nil once both ends are gone.
  var other: Endpoint?
  weak var stream: VirtualStream?

  // What has arrived and was not read.
  private(set) var arrived: [UInt8] = []
  private var readUpTo = 0
  /// When the bytes up to each place could first have been written.
  private var stamps: [(upTo: Int, stamp: Int64)] = []
  private var firstStamp = 0
  private(set) var hasEnded = false
  private(set) var isReset = false

  // What this end sends.
  var capacity: Int
  private(set) var outstanding = 0
  private var lastArrival: Int64 = 0
  /// Segments that wait for the way to be free again.
  private var held: [Segment] = []
  private(set) var isStalled = false
  /// Never to be free again: the other side vanished.
  private var isSevered = false
  private(set) var isClosed = false
  private var endSent = false
  var userTimeoutNs: Int64 = 0
  private var isTimeoutArmed = false
  private var progressAt: Int64 = 0

  /// Bytes a slow reader takes at once, and its pause after that.
  var slowness: (bytes: Int, pause: Duration)?

  init(_ number: Int, _ network: VirtualNetwork, capacity: Int) {
    self.number = number
    self.network = network
    self.capacity = capacity
  }

  var unreadCount: Int { arrived.count - readUpTo }

  // MARK: Sending

  /// Takes what the window allows.
  func send(_ bytes: UnsafeRawBufferPointer, stamp: Int64) -> Int {
    guard !isClosed, !endSent, !isReset else { return bytes.count }
    let taken = max(0, min(bytes.count, capacity - outstanding))
    guard taken > 0 else { return 0 }
    outstanding += taken
    var offset = 0
    while offset < taken {
      let size = network.segmentSize(taken - offset)
      let part = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + size])
      transmit(Segment(bytes: Array(part), stamp: stamp))
      offset += size
    }
    return taken
  }

  func sendEnd() {
    guard !endSent, !isClosed else { return }
    endSent = true
    transmit(Segment(bytes: [], stamp: network.world.now, isEnd: true))
  }

  private func transmit(_ segment: Segment) {
    guard !isStalled else {
      if !isSevered { held.append(segment) }
      armTimeout()
      return
    }
    let arrival = max(lastArrival, network.world.now + network.latency())
    lastArrival = arrival
    network.world.at(arrival) { [weak self] in
      guard let self else { return }
      progressAt = network.world.now
      other?.receive(segment)
    }
  }

  /// The peer read so many bytes.
  private func wasRead(_ count: Int) {
    outstanding -= count
    stream?.roomMade()
  }

  // MARK: Receiving

  private func receive(_ segment: Segment) {
    let world = network.world
    if segment.isReset {
      guard !isClosed, !isReset else { return }
      isReset = true
      world.note("reset", UInt64(number))
      stream?.wake()
      return
    }
    if isClosed {
      // Nobody is here any more.
      if !segment.isEnd { transmit(Segment(bytes: [], stamp: world.now, isReset: true)) }
      return
    }
    guard !isReset else { return }
    if !segment.bytes.isEmpty {
      world.note("arrives", UInt64(number), UInt64(segment.bytes.count))
      segment.bytes.withUnsafeBytes { world.trace.mix(bytes: $0) }
      if readUpTo > 0, readUpTo == arrived.count {
        forgetRead()
      }
      arrived.append(contentsOf: segment.bytes)
      if let last = stamps.last, stamps.count > firstStamp, segment.stamp - last.stamp < 500_000_000 {
        stamps[stamps.count - 1].upTo = arrived.count
      } else {
        stamps.append((arrived.count, segment.stamp))
      }
    }
    if segment.isEnd { hasEnded = true }
    stream?.wake()
  }

  /// Hands out what was read; at most `max` bytes, none of which could have been written half a second after others.
  func read(_ max: Int) -> (bytes: [UInt8], stamp: Int64) {
    while firstStamp < stamps.count - 1, stamps[firstStamp].upTo <= readUpTo { firstStamp += 1 }
    let piece = stamps[firstStamp]
    let count = min(max, piece.upTo - readUpTo)
    let bytes = Array(arrived[readUpTo..<readUpTo + count])
    readUpTo += count
    if readUpTo == arrived.count { forgetRead() }
    other?.wasRead(count)
    return (bytes, piece.stamp)
  }

  private func forgetRead() {
    arrived.removeAll(keepingCapacity: arrived.capacity < 65_536)
    readUpTo = 0
    stamps.removeAll(keepingCapacity: true)
    firstStamp = 0
  }

  // MARK: Ending and faults

  /// The process has closed it: an end after what was sent, or a reset when something was left unread.
  func close(reset: Bool) {
    guard !isClosed else { return }
    if reset || unreadCount > 0 {
      isClosed = true
      if !isReset { transmit(Segment(bytes: [], stamp: network.world.now, isReset: true)) }
    } else {
      sendEnd()
      isClosed = true
    }
    network.closed(self)
  }

  /// A router said so, or a machine in between was restarted.
  func breakDown() {
    guard !isReset, !isClosed else { return }
    isReset = true
    network.world.note("broken", UInt64(number))
    stream?.wake()
  }

  /// What this end sends gets nowhere; for ever when `severed`.
  func stall(severed: Bool = false) {
    isStalled = true
    if severed {
      isSevered = true
      held = []
    }
  }

  func resume() {
    guard isStalled, !isSevered else { return }
    isStalled = false
    let waiting = held
    held = []
    progressAt = network.world.now
    for segment in waiting { transmit(segment) }
  }

  private func armTimeout() {
    guard userTimeoutNs > 0, !isTimeoutArmed else { return }
    isTimeoutArmed = true
    let since = network.world.now
    network.world.at(since + userTimeoutNs) { [weak self] in
      guard let self else { return }
      isTimeoutArmed = false
      guard isStalled, progressAt <= since, !isClosed else { return }
      breakDown()
    }
  }

  func forget() {
    other = nil
    held = []
  }
}
