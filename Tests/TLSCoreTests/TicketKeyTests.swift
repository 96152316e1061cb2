import Testing

@testable import TLSCore

@Suite struct TicketKeyTests {
  private let privateKey = Array("a private key".utf8)

  private func opens(_ keys: TicketKeys, _ name: [UInt8], day: Int, isForTLS13: Bool = true) -> [UInt8]? {
    name.withUnsafeBytes { keys.opening(name: $0, day: day, isForTLS13: isForTLS13)?.seal }
  }

  @Test func aKeyIsGoodForSevenDays() throws {
    let keys = try TicketKeys(privateKey: privateKey, previous: nil)
    let key = try #require(keys.sealing(day: 20_000, isForTLS13: true))
    #expect(key.name.count == 16 && key.seal.count == 32 && key.code.count == 32)
    #expect(key.seal != key.code)
    for day in 20_000...20_006 { #expect(opens(keys, key.name, day: day) == key.seal) }
    #expect(opens(keys, key.name, day: 20_007) == nil)
    // A clock that was set back.
    #expect(opens(keys, key.name, day: 19_999) == nil)
  }

  @Test func eachDayHasAKeyOfItsOwn() throws {
    let keys = try TicketKeys(privateKey: privateKey, previous: nil)
    let seals = Set((0..<600).compactMap { keys.sealing(day: $0, isForTLS13: true)?.seal })
    #expect(seals.count == 600)
  }

  @Test func theSamePrivateKeyMakesTheSameKeys() throws {
    let (one, two) = (
      try TicketKeys(privateKey: privateKey, previous: nil),
      try TicketKeys(privateKey: privateKey, previous: nil)
    )
    let key = try #require(one.sealing(day: 7, isForTLS13: true))
    #expect(opens(two, key.name, day: 9) == key.seal)
    let other = try TicketKeys(privateKey: Array("another".utf8), previous: nil)
    #expect(opens(other, key.name, day: 9) == nil)
  }

  @Test func ticketsOfTLS12AreForThisProcessAlone() throws {
    let one = try TicketKeys(privateKey: privateKey, previous: nil)
    let key = try #require(one.sealing(day: 7, isForTLS13: false))
    #expect(opens(one, key.name, day: 8, isForTLS13: false) == key.seal)
    #expect(opens(one, key.name, day: 8) == nil)
    let two = try TicketKeys(privateKey: privateKey, previous: nil)
    #expect(opens(two, key.name, day: 7, isForTLS13: false) == nil)
    let next = try TicketKeys(privateKey: privateKey, previous: one)
    #expect(opens(next, key.name, day: 7, isForTLS13: false) == key.seal)
  }

  @Test func theContextBeforeIsKnownAndNoneBeforeThat() throws {
    let one = try TicketKeys(privateKey: [1], previous: nil)
    let two = try TicketKeys(privateKey: [2], previous: one)
    let three = try TicketKeys(privateKey: [3], previous: two)
    let (first, second) = (
      try #require(one.sealing(day: 7, isForTLS13: true)), try #require(two.sealing(day: 7, isForTLS13: true))
    )
    #expect(opens(two, first.name, day: 7) == first.seal)
    #expect(opens(three, second.name, day: 7) == second.seal)
    #expect(opens(three, first.name, day: 7) == nil)
  }
}
