// modules: Bytes TLSCore
import Bytes
import TLSCore

/// Two layers of TLS 1.3 records with a wire between them that somebody else holds.
///
/// Holds that each side gets the beginning of what the other has sent, whatever is done to the records on their way: all of it
/// when nothing is done, and nothing from the first record on that was altered, left out or repeated.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRecords(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var script = UnsafeBufferPointer(start: start, count: start == nil ? 0 : count)[...]
  guard let suite = script.popFirst().flatMap({ CipherSuite(rawValue: 0x1301 + UInt16($0) % 3) }) else {
    return 0
  }
  let secretBytes = suite == .aes256 ? 48 : 32
  guard let one = TrafficSecret([UInt8](repeating: 1, count: secretBytes), of: suite),
    let other = TrafficSecret([UInt8](repeating: 2, count: secretBytes), of: suite),
    let left = RecordLayer(sending: one, sent: 0, receiving: other, sealedMax: 5),
    let right = RecordLayer(sending: other, sent: 0, receiving: one, sealedMax: 5)
  else { fatalError("no layers") }
  let ways = [Way(from: left, to: right), Way(from: right, to: left)]
  ways[0].back = ways[1]
  ways[1].back = ways[0]
  while let step = script.popFirst() {
    let way = ways[Int(step & 1)]
    let number = Int(script.popFirst() ?? 0)
    switch step >> 1 & 7 {
    case 0, 1: way.send(number &* 97)
    case 2: way.deliver(number)
    case 3: way.deliver(.max)
    case 4: way.alter(number, to: script.popFirst() ?? 0)
    case 5: way.insert(script.prefix(number))
    case 6: way.repeats()
    default: way.cut(number)
    }
  }
  for way in ways {
    way.deliver(.max)
    way.check()
  }
  return 0
}

/// One direction.
private final class Way {
  private let from: RecordLayer
  private let to: RecordLayer
  private let scratch = TLSScratch()
  private var sent: [UInt8] = []
  private var wire: [UInt8] = []
  private var delivered: [UInt8] = []
  private var received: [UInt8] = []
  /// What was delivered as it was sent, or nil once that is not so.
  private var genuine: [UInt8]? = []
  private var hasEnded = false
  /// The other direction.
  weak var back: Way?

  init(from: RecordLayer, to: RecordLayer) {
    self.from = from
    self.to = to
  }

  func send(_ count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &+ sent.count) }
    guard bytes.withUnsafeBytes({ from.send($0, into: scratch.output) }) else { fatalError("cannot send") }
    sent += bytes
    wire += scratch.output.bytes
    if genuine != nil { genuine? += scratch.output.bytes }
    scratch.output.removeAll()
  }

  func deliver(_ count: Int) {
    let some = Array(wire.prefix(count))
    wire.removeFirst(some.count)
    delivered += some
    guard !hasEnded, !some.isEmpty else { return }
    let ending = some.withUnsafeBytes { bytes in
      to.receive(bytes, scratch) { received.append(contentsOf: $0) }
    }
    // Its alert was a record of the other direction, and nobody brings it there.
    scratch.output.removeAll()
    guard ending != nil else { return }
    hasEnded = true
    back?.genuine = nil
  }

  func alter(_ place: Int, to value: UInt8) {
    if place < wire.count { wire[place] = value }
  }

  func insert(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) { wire.insert(contentsOf: bytes, at: 0) }

  func repeats() { if wire.count < 100_000 { wire += wire } }

  func cut(_ count: Int) { wire.removeFirst(min(count, wire.count)) }

  func check() {
    guard sent.starts(with: received) else { fatalError("got what was not sent") }
    let isGenuine = genuine == delivered
    if isGenuine, hasEnded || received != sent { fatalError("lost what nobody touched") }
    if !isGenuine, received.count == sent.count, !sent.isEmpty, !hasEnded, let genuine,
      !delivered.starts(with: genuine), !genuine.starts(with: delivered)
    {
      fatalError("did not see that something was altered")
    }
  }
}
