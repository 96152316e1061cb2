import Seams
import Testing
import XMLCore

@Suite struct XMLTextTests {
  private func survey(_ bytes: [UInt8]) -> XMLText.Survey? { bytes.withUnsafeBytes { XMLText.survey($0) } }

  @Test func everyControlCharacterButThreeIsIllegalAtEveryPlace() {
    for place in [0, 1, 7, 15, 16, 17, 31, 32, 40] {
      for byte in UInt8(0)..<0x20 {
        var text = [UInt8](repeating: 0x61, count: 41)
        text[place] = byte
        let expected: XMLText.Survey? =
          byte == 0x09 || byte == 0x0A ? [] : byte == 0x0D ? .carriageReturn : nil
        #expect(survey(text) == expected)
      }
    }
    #expect(survey([0x7F]) == [])
    #expect(survey([]) == [])
  }

  @Test func nonCharactersAreToldApart() {
    #expect(survey(Array("a\u{FFFE}".utf8)) == [.nonASCII, .nonCharacter])
    #expect(survey(Array("a\u{FFFF}".utf8)) == [.nonASCII, .nonCharacter])
    #expect(survey(Array("a\u{FFFD}\u{1FFFE}\u{10FFFF}".utf8)) == .nonASCII)
  }

  @Test func utf8IsJudgedAsTheStandardLibraryDoes() {
    var chance = SeededChance(seed: 3)
    let leads: [UInt8] = [
      0x61, 0x7F, 0x80, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5,
      0xFF,
    ]
    let tails: [UInt8] = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBD, 0xBE, 0xBF, 0xC0]
    var accepted = 0
    for _ in 0..<100_000 {
      var bytes = [UInt8](repeating: 0x61, count: Int.random(in: 0..<18, using: &chance))
      bytes.append(leads.randomElement(using: &chance) ?? 0)
      for _ in 0..<Int.random(in: 0..<4, using: &chance) {
        bytes.append(tails.randomElement(using: &chance) ?? 0)
      }
      let legal = String(validating: bytes, as: UTF8.self)
      let found = survey(bytes)
      #expect((found != nil) == (legal != nil), "\(bytes)")
      if let legal {
        accepted += 1
        let odd = legal.unicodeScalars.contains { $0.value == 0xFFFE || $0.value == 0xFFFF }
        #expect(found?.contains(.nonCharacter) == odd, "\(bytes)")
      }
    }
    #expect(accepted > 1_000)
  }
}
