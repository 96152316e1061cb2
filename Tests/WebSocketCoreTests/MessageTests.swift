import Bytes
import Seams
import Testing
import WebSocketCore

@Suite struct MessageTests {
  @Test func theExamplesOfTheStandardAreReadInEveryCut() throws {
    // RFC 6455 §5.7.
    let hello = Array("Hello".utf8)
    #expect(hearAnyWay([0x81, 0x05] + hello, as: .client)?.texts == ["Hello"])
    let fromClient: [UInt8] = [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
    #expect(hearAnyWay(fromClient)?.texts == ["Hello"])
    let fragments: [UInt8] = [0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F]
    #expect(hearAnyWay(fragments, as: .client)?.texts == ["Hello"])
    let ping: [UInt8] = [0x89, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
    #expect(hearAnyWay(ping)?.output == [0x8A, 0x05] + hello)
    let kilo = [UInt8](repeating: 7, count: 256)
    #expect(hearAnyWay([0x82, 0x7E, 0x01, 0x00] + kilo, as: .client)?.messages == [kilo])
    var limits = WebSocketLimits()
    limits.messageBytesMax = 65_536
    let large = [UInt8](repeating: 9, count: 65_536)
    let header: [UInt8] = [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0]
    #expect(hear([header + large], as: .client, limits: limits).messages == [large])
  }

  @Test func controlFramesMayStandBetweenFragments() throws {
    let input =
      masked(1, "ab", final: false) + masked(9, "p1") + masked(0, "", final: false) + masked(10, "x")
      + masked(0, "cd") + masked(2, [1, 2, 3])
    let heard = try #require(hearAnyWay(input))
    #expect(heard.messages == [Array("abcd".utf8), [1, 2, 3]])
    #expect(heard.contents == [.text, .binary])
    #expect(heard.output == frame(10, Array("p1".utf8)))
    #expect(heard.end == nil)
  }

  @Test func aCharacterCutByAFragmentIsOneCharacter() throws {
    let text = #"{"e":"é語🌍"}"#
    let bytes = Array(text.utf8)
    for place in 0...bytes.count {
      let input = masked(1, Array(bytes[..<place]), final: false) + masked(0, Array(bytes[place...]))
      #expect(hearAnyWay(input)?.texts == [text])
    }
  }

  @Test func messagesOfEveryLengthRoundTrip() {
    var limits = WebSocketLimits()
    limits.messageBytesMax = 70_000
    for role in [WebSocketConnection.Role.client, .server] {
      let sender = WebSocketConnection(role, limits: limits, now: start, random: { 0xA1B2_C3D4 })
      for count in [
        0, 1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 63, 125, 126, 127, 4_095, 4_096, 4_097, 65_535, 65_536,
      ] {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var output = ByteWriter()
        payload.withUnsafeBytes { sender.send(.binary, $0, output: &output) }
        #expect(output.bytes == frame(2, payload, key: role == .client ? [0xD4, 0xC3, 0xB2, 0xA1] : nil))
        let other: WebSocketConnection.Role = role == .client ? .server : .client
        #expect(hear([output.bytes], as: other, limits: limits).messages == [payload])
        var direct = [UInt8](repeating: 0, count: count + 14)
        let written = payload.withUnsafeBytes { payload in
          direct.withUnsafeMutableBytes {
            WebSocketFrame.write(.binary, payload: payload, mask: role == .client ? 0xA1B2_C3D4 : nil, to: $0)
          }
        }
        #expect(Array(direct[..<written]) == output.bytes)
      }
    }
  }

  @Test func everyMaskAndPlaceIsUndone() {
    var chance = SeededChance(seed: 3)
    for count in 0..<80 {
      let payload = (0..<count).map { _ in UInt8.random(in: 0...255, using: &chance) }
      let keys = (0..<4).map { _ in UInt8.random(in: 0...255, using: &chance) }
      let bytes = frame(2, payload, key: keys)
      #expect(hear([bytes]).messages == [payload])
      #expect(hear(bytes.map { [$0] }).messages == [payload])
      #expect(
        hear([Array(bytes.prefix(bytes.count / 2)), Array(bytes.suffix(from: bytes.count / 2))]).messages == [
          payload
        ])
    }
  }

  @Test func nothingIsHeldBetweenMessages() {
    let connection = WebSocketConnection(.server, now: start, random: { 0 })
    var scratch: [UInt8] = []
    var output = ByteWriter()
    func feed(_ bytes: [UInt8]) {
      bytes.withUnsafeBytes { chunk in
        var offset = 0
        while connection.next(chunk, &offset, scratch: &scratch, output: &output, now: start) != nil {}
      }
    }
    feed(masked(2, "abc", final: false) + [0x80, 0x83])
    #expect(connection.heldBytes == 3)
    feed(key + [1, 2])
    #expect(connection.heldBytes == 5)
    feed([UInt8(ascii: "c") ^ key[2]])
    #expect(connection.heldBytes == 0)
  }
}
