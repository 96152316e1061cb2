import Bytes
import EventLoops
import TLSCore

/// What the channels of one loop share: the scratch of TLS, a pool of output buffers, and the list of channels to
/// be flushed at the round's end.
final class ChannelLoop {
  /// Buffers kept for the next round; those that grew beyond 64 KB are not.
  private static var pooledMax: Int { 256 }
  private static var pooledBytesMax: Int { 64 * 1024 }
  /// Times that flushing may lead to more to flush before the loop looks at its sockets again.
  private static var passesMax: Int { 4 }

  let scratch = TLSScratch()
  private let loop: any Loop
  private var pool: [OutBuffer] = []
  private var dirty: [Channel] = []
  private var flushing: [Channel] = []
  /// Channels on the list that were given more than one thing to send.
  private var joined = 0

  /// The loop's one instance.
  static func of(_ loop: any Loop) -> ChannelLoop {
    loop.local(ChannelLoop.self) { ChannelLoop(loop) }
  }

  private init(_ loop: any Loop) {
    self.loop = loop
    loop.onRoundEnd { [unowned self] in flush() }
  }

  func add(_ channel: Channel) { dirty.append(channel) }

  /// A channel that is on the list has more to send.
  func countJoined() { joined += 1 }

  func takeBuffer() -> OutBuffer { pool.popLast() ?? OutBuffer() }

  func giveBack(_ buffer: OutBuffer) {
    guard pool.count < Self.pooledMax, buffer.capacity <= Self.pooledBytesMax else { return }
    buffer.removeAll()
    pool.append(buffer)
  }

  private func flush() {
    var passes = 0
    loop.wrote(to: dirty.count, joined: joined)
    joined = 0
    while !dirty.isEmpty, passes < Self.passesMax {
      passes += 1
      swap(&dirty, &flushing)
      let batch = flushing
      flushing = []
      for channel in batch { channel.flush() }
      if flushing.isEmpty {
        flushing = batch
        flushing.removeAll(keepingCapacity: batch.capacity <= 65_536)
      }
    }
    if !dirty.isEmpty { loop.later {} }
  }
}
