import Bytes
import JSONCore
import Testing

/// Reads a text that is one member's value and lends its place.
private func withString<Result>(
  _ content: String, _ body: (JSONString, UnsafeRawBufferPointer) throws -> Result
) throws -> Result {
  var document = JSONDocument()
  let bytes = Array("{\"k\":\"\(content)\"}".utf8)
  return try bytes.withUnsafeBytes { text in
    try document.read(text)
    let place = try #require(document.members.first?.string)
    return try body(place, text)
  }
}

@Suite struct JSONStringTests {
  @Test(arguments: [
    ("", ""), ("plain", "plain"), (#"\""#, "\""), (#"\\"#, "\\"), (#"\/"#, "/"),
    (#"\b\f\n\r\t"#, "\u{8}\u{C}\n\r\t"),
    (#"\u0041"#, "A"), (#"\u0000"#, "\0"), (#"\u00E9"#, "é"), (#"\u20ac"#, "€"), (#"\ud83d\ude06"#, "😆"),
    (#"\uDBFF\uDFFF"#, "\u{10FFFF}"), ("é語🌍", "é語🌍"), (#"a\u001ab"#, "a\u{1A}b"), (#"\uFFFF"#, "\u{FFFF}"),
    (#"x\ty😆\\z"#, "x\ty😆\\z"),
  ])
  func contentIsDecoded(_ raw: String, _ value: String) throws {
    try withString(raw) { place, text in
      #expect(place.string(in: text) == value)
      #expect(place.decoded(in: text) == Array(value.utf8))
      #expect(place.decodedCount == value.utf8.count)
      #expect(place.isEscaped == raw.contains("\\"))
      #expect(Array(place.raw(in: text)) == Array(raw.utf8))
      #expect(place.isEmpty == value.isEmpty)
    }
  }

  @Test func aPairOfEscapesAnEscapeAndRawBytesAreOneCharacter() throws {
    for raw in [#"\ud83d\ude06"#, "😆"] {
      try withString(raw) { place, text in
        #expect(place.string(in: text).unicodeScalars.map(\.value) == [0x1F606])
        #expect(place.decodedCount == 4)
      }
    }
  }

  @Test func comparingSeesThroughEscapes() throws {
    try withString(#"\/topics\/n\u0065ws"#) { place, text in
      #expect(place.equals("/topics/news", in: text))
      #expect(place.hasPrefix("/topics/", in: text))
      #expect(!place.equals("/topics/new", in: text))
      #expect(!place.hasPrefix("/topics/x", in: text))
    }
    try withString("") { place, text in
      #expect(place.equals("", in: text))
      #expect(!place.hasPrefix("a", in: text))
    }
  }

  @Test(arguments: [
    ("0", 0), ("-0", 0), ("42", 42), ("-7", -7), ("9223372036854775807", Int64.max),
    ("-9223372036854775808", Int64.min),
  ])
  func integersAreReadExactly(_ text: String, _ value: Int64) {
    #expect(Array(text.utf8).withUnsafeBytes { JSONNumber.integer($0) } == value)
  }

  @Test(arguments: [
    "", "-", "1.0", "1e3", "9223372036854775808", "-9223372036854775809", "99999999999999999999", "a",
  ])
  func otherNumbersAreNoIntegers(_ text: String) {
    #expect(Array(text.utf8).withUnsafeBytes { JSONNumber.integer($0) } == nil)
  }

  @Test func writingEscapesWhatJSONMustNotHold() {
    var writer = ByteWriter()
    writer.append(jsonString: "a\u{1A}\"\\\n\u{0}/é😆\u{7F}")
    #expect(String(decoding: writer.bytes, as: UTF8.self) == #""a\u001a\"\\\u000a\u0000/é😆"# + "\u{7F}\"")
  }

  @Test func whatIsWrittenIsReadBack() throws {
    for value in (0..<0x250).map({ "\(UnicodeScalar($0).map(String.init) ?? "")x" }) {
      var writer = ByteWriter()
      writer.append(jsonEscaped: value)
      try withString(String(decoding: writer.bytes, as: UTF8.self)) { place, text in
        #expect(place.string(in: text) == value)
      }
    }
  }
}
