import Testing

@testable import Bytes

@Suite struct HexTests {
  private func read(_ text: String) -> Hash128? { Array(text.utf8).withUnsafeBytes { Hash128(hex: $0) } }

  @Test func digitsComeBackAsTheNumberTheyWereMadeOf() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<1_000 {
      let hash = Hash128(high: generator.next(), low: generator.next())
      #expect(read(hash.hex) == hash)
      #expect(read(hash.hex.uppercased()) == hash)
    }
    #expect(
      Hash128(high: 0x0123_4567_89ab_cdef, low: 0xfedc_ba98_7654_3210).hex
        == "0123456789abcdeffedcba9876543210")
    #expect(Hash128(high: 0, low: .max).hex == "0000000000000000ffffffffffffffff")
  }

  @Test func everyByteThatIsNoDigitIsRefusedInEveryPlace() {
    let good = Array("0123456789abcdefABCDEF9876543210".utf8)
    #expect(good.withUnsafeBytes { Hash128(hex: $0) } != nil)
    // Counted, since an expectation costs far more than a step.
    var wrong = 0
    for place in 0..<32 {
      for byte in UInt8.min ... .max {
        var bytes = good
        bytes[place] = byte
        let isDigit = Character(UnicodeScalar(byte)).isHexDigit && byte < 0x80
        if (bytes.withUnsafeBytes { Hash128(hex: $0) } != nil) != isDigit { wrong += 1 }
      }
    }
    #expect(wrong == 0)
  }

  @Test func onlyThirtyTwoDigitsAreAKey() {
    #expect(read(String(repeating: "a", count: 31)) == nil)
    #expect(read(String(repeating: "a", count: 33)) == nil)
    #expect(read("") == nil)
  }
}
