import Bytes
import Seams
import Testing
import WebSocketCore

@Suite struct FaultTests {
  static let cases: [(WebSocketFault, [UInt8])] = [
    (.reservedBit, masked(1, [1], reserved: 4)),
    (.reservedBit, masked(1, [1], reserved: 2)),
    (.reservedBit, masked(9, [1], reserved: 1)),
    (.unknownOpcode, masked(3)),
    (.unknownOpcode, masked(7)),
    (.unknownOpcode, masked(11)),
    (.unknownOpcode, masked(15)),
    (.badControlFrame, masked(9, [1], final: false)),
    (.badControlFrame, masked(9, [UInt8](repeating: 0, count: 126))),
    (.badControlFrame, masked(8, [UInt8](repeating: 0, count: 126))),
    (.badMasking, frame(1, [1])),
    (.badLength, [0x82, 0xFE, 0, 125] + key + [UInt8](repeating: 0, count: 125)),
    (.badLength, [0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + key),
    (.badLength, [0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0] + key),
    (.badFragment, masked(0, "x")),
    (.badFragment, masked(0, "x", final: false)),
    (.badFragment, masked(1, "x", final: false) + masked(1, "y")),
    (.badFragment, masked(1, "x", final: false) + masked(2, "y", final: false)),
    (.badFragment, masked(1, "x") + masked(0, "y")),
    (.badClose, masked(8, [3])),
    (.badClose, masked(8, [0, 0])),
    (.badClose, masked(8, [0x03, 0xED])),
    (.badText, masked(8, [0x03, 0xE8, 0xC3])),
    (.badText, masked(1, [0xFF])),
    (.badText, masked(1, [0xC3])),
    (.badText, masked(1, [0xED, 0xA0, 0x80])),
    (.badText, masked(1, [0x61, 0xC3], final: false) + masked(0, [0x28])),
    (.badText, masked(1, [0xF0, 0x9F], final: false) + masked(0, [])),
    (.messageTooBig, [0x82, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF] + key),
    (.messageTooBig, masked(2, [UInt8](repeating: 0, count: 100), final: false) + masked(0, [1])),
    (.tooManyFragments, masked(1, [], final: false) + (0..<8).flatMap { _ in masked(0, [], final: false) }),
  ]

  @Test func everyFaultClosesWithItsCodeInEveryCut() {
    var limits = WebSocketLimits()
    limits.messageBytesMax = 100
    limits.fragmentsMax = 8
    for (fault, input) in Self.cases {
      let heard = hearAnyWay(input + masked(1, "never read"), limits: limits)
      #expect(heard?.end == .failed(fault), "\(input)")
      #expect(heard?.output == frame(8, [UInt8(fault.code.rawValue >> 8), UInt8(fault.code.rawValue & 255)]))
      #expect(heard?.texts.contains("never read") == false)
    }
    #expect(Set(Self.cases.map(\.0)) == Set(WebSocketFault.allCases))
  }

  @Test func aServersFrameMustNotBeMasked() {
    let heard = hear([masked(1, "x")], as: .client)
    #expect(heard.end == .failed(.badMasking))
    // A client's close is masked; the key is 0x01020304, lowest byte first.
    #expect(heard.output == frame(8, [0x03, 0xEA], key: [4, 3, 2, 1]))
  }

  @Test func exactlyTheLimitPasses() {
    var limits = WebSocketLimits()
    limits.messageBytesMax = 300
    limits.fragmentsMax = 3
    let payload = [UInt8](repeating: 0x61, count: 300)
    #expect(hearAnyWay(masked(1, payload), limits: limits)?.messages == [payload])
    let parts =
      masked(1, Array(payload[..<100]), final: false) + masked(0, Array(payload[100..<299]), final: false)
      + masked(0, [0x61])
    #expect(hearAnyWay(parts + parts, limits: limits)?.messages == [payload, payload])
    #expect(hearAnyWay(masked(1, payload + [0]), limits: limits)?.end == .failed(.messageTooBig))
  }

  @Test func wrongTextIsRefusedAtItsFirstWrongByte() {
    // The rest of the frame, and of the message, has not come.
    let input = masked(1, Array("ab".utf8) + [0xFF] + Array("cdef".utf8), final: false)
    #expect(hear([Array(input.prefix(2 + 4 + 3))]).end == .failed(.badText))
  }

  @Test func textIsCheckedAsTheStandardLibraryDoes() {
    var chance = SeededChance(seed: 8)
    let pieces: [[UInt8]] = [
      [0x00], [0x7F], [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2, 0x80], [0xDF, 0xBF],
      [0xE0, 0x9F, 0xBF],
      [0xE0, 0xA0, 0x80], [0xEC, 0xBF, 0xBF], [0xED, 0x9F, 0xBF], [0xED, 0xA0, 0x80], [0xEF, 0xBF, 0xBF],
      [0xF0, 0x8F, 0xBF, 0xBF], [0xF0, 0x90, 0x80, 0x80], [0xF3, 0xBF, 0xBF, 0xBF], [0xF4, 0x8F, 0xBF, 0xBF],
      [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFE], [0xFF], Array("plain text".utf8),
    ]
    for round in 0..<3_000 {
      var text: [UInt8] = []
      for _ in 0..<Int.random(in: 1...5, using: &chance) {
        text += pieces[Int.random(in: 0..<pieces.count, using: &chance)]
      }
      if round % 3 == 0, !text.isEmpty { text.removeLast() }
      let isRight = String(validating: text, as: UTF8.self) != nil
      #expect((hear([masked(1, text)]).end == nil) == isRight, "\(text)")
      #expect((hear(masked(1, text).map { [$0] }).end == nil) == isRight, "\(text)")
    }
  }
}
