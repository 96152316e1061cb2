import Testing

@testable import EventLoops

@Suite struct RoundLengthTests {
  @Test func roundsAreLongerWhileManyConnectionsGetMoreThanOneThing() {
    var length = RoundLength()
    #expect(length.ns == 10_000_000)
    // Ten senders of a hundred connections get many answers each: that alone is no reason.
    length.wrote(to: 100, joined: 15)
    #expect(length.ns == 10_000_000)
    length.wrote(to: 200, joined: 65)
    #expect(length.ns == 25_000_000)
    length.wrote(to: 4, joined: 2)
    #expect(length.ns == 40_000_000)
    length.wrote(to: 10, joined: 10)
    #expect(length.ns == 40_000_000)
    // A round that wrote nothing says nothing.
    length.wrote(to: 0, joined: 0)
    #expect(length.ns == 40_000_000)
    length.wrote(to: 10, joined: 0)
    #expect(length.ns == 10_000_000)
  }
}
