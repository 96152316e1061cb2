import HTTPCore
import Seams
import Testing

struct HTTPMutationTests {
  private static let corpus = [
    "GET /1 HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\nGET /2 HTTP/1.0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\nExpect: 100-continue\r\n\r\n",
  ]

  /// Bytes changed, inserted, removed and doubled at random never trap, and never mean two things in two cuts.
  @Test(arguments: corpus.indices)
  func damagedInputMeansTheSameInEveryCut(_ index: Int) {
    var chance = SeededChance(seed: UInt64(index))
    let interesting: [UInt8] = [0, 9, 10, 13, 32, 44, 48, 58, 59, 70, 127, 128, 255]
    for round in 0..<1_500 {
      var bytes = Array(Self.corpus[index].utf8)
      for _ in 0...(chance.next() % 3) {
        let place = Int(chance.next() % UInt64(bytes.count))
        let byte = interesting[Int(chance.next() % UInt64(interesting.count))]
        switch chance.next() % 4 {
        case 0: bytes[place] = byte
        case 1: bytes.insert(byte, at: place)
        case 2: bytes.remove(at: place)
        default: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 9)], at: place)
        }
      }
      let whole = talk([bytes], ends: true)
      let single = talk(bytes.map { [$0] }, ends: true)
      let middle = Int(chance.next() % UInt64(bytes.count))
      let halves = talk([Array(bytes[..<middle]), Array(bytes[middle...])], ends: true)
      #expect(
        whole == single && whole == halves,
        "round \(round): \(String(decoding: bytes, as: UTF8.self).debugDescription)")
      #expect(whole.isDone)
    }
  }
}
