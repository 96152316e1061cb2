import JSONCore
import Testing

/// Reads a text and hands out the members' names with their raw values, in order.
private func members(_ text: String, recordedDepth: Int = 2) throws -> [String] {
  var document = JSONDocument(recordedDepth: recordedDepth)
  let bytes = Array(text.utf8)
  try bytes.withUnsafeBytes { try document.read($0) }
  return bytes.withUnsafeBytes { text in
    document.members.map { member in
      "\(member.name.string(in: text))=\(String(decoding: member.value.raw(in: text), as: UTF8.self))"
    }
  }
}

private func fault(_ bytes: [UInt8], depthMax: Int = 16) -> JSONFault? {
  var document = JSONDocument(depthMax: depthMax)
  do throws(JSONFault) {
    let read = bytes.withUnsafeBytes { text -> Result<Void, JSONFault> in
      do throws(JSONFault) { return .success(try document.read(text)) } catch { return .failure(error) }
    }
    try read.get()
    return nil
  } catch {
    return error
  }
}

private func fault(_ text: String, depthMax: Int = 16) -> JSONFault? {
  fault(Array(text.utf8), depthMax: depthMax)
}

@Suite struct JSONDocumentTests {
  @Test func membersOfTheObjectAndOfItsObjectsAreListedInOrder() throws {
    let text = #" { "a" : 1 , "b":{"x":"y","deep":{"q":[1,{"z":0}]}},"c":[{"no":1}],"d":{} , "e":null} "#
    #expect(
      try members(text) == [
        "a=1", #"b={"x":"y","deep":{"q":[1,{"z":0}]}}"#, #"x="y""#, #"deep={"q":[1,{"z":0}]}"#,
        #"c=[{"no":1}]"#,
        "d={}", "e=null",
      ])
    #expect(try members(text, recordedDepth: 1).count == 5)
    #expect(try members(text, recordedDepth: 8).count == 8)
  }

  @Test func childrenAndNextWalkOneLevel() throws {
    var document = JSONDocument()
    let bytes = Array(#"{"a":{"x":1,"y":{"z":2}},"b":true}"#.utf8)
    try bytes.withUnsafeBytes { try document.read($0) }
    #expect(document.members[0].next == 3)
    #expect(document.children(of: 0) == 1..<3)
    #expect(document.children(of: 3).isEmpty)
    #expect(document.members[3].kind == .true)
  }

  @Test(arguments: [
    ("{}", JSONKind.object), ("[]", .array), ("\"\"", .string), (" 0 ", .number), ("true", .true),
    ("false", .false), ("null", .null), ("[[],{},[{}]]", .array),
  ])
  func everyKindMayStandAlone(_ text: String, _ kind: JSONKind) throws {
    var document = JSONDocument()
    try Array(text.utf8).withUnsafeBytes { try document.read($0) }
    #expect(document.kind == kind)
  }

  @Test(arguments: [
    "0", "-0", "1", "-1", "10", "1.5", "-0.0", "1e5", "1E+5", "1e-5", "1.0e10",
    "123456789012345678901234567890",
    "1e999",
  ])
  func numbersOfTheGrammarPass(_ text: String) { #expect(fault(text) == nil) }

  @Test(arguments: [
    "01", "-", "+1", ".5", "1.", "1.e5", "1e", "1e+", "--1", "0x10", "1_000", "NaN", "Infinity", "-01", "00",
  ])
  func otherNumbersAreRefused(_ text: String) { #expect(fault(text) != nil) }

  @Test(arguments: [
    "", " ", "{", "[", "\"", "\"a", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "[1", "[1,", "tru", "nul",
    "-",
    "\"\\", "\"\\u12",
  ])
  func aTextThatEndsEarlySaysSo(_ text: String) {
    #expect(fault(text) == JSONFault(.unexpectedEnd, at: text.utf8.count))
  }

  @Test(arguments: [
    "{a:1}", "{'a':1}", "{\"a\" 1}", "{\"a\":1,}", "[1,]", "[,]", "{,}", "[1 2]", "{\"a\":1 \"b\":2}", "]",
    "}",
    "[}", "{]", "[1}", "{\"a\":1]", "True", "nulL", "/**/1", "[1]//", "undefined", "{\"a\"::1}", "{1:1}",
    "\u{FEFF}{}",
    "{} {}", "1 1", "\"a\" x", "[\u{B}1]", "[\u{A0}1]",
  ])
  func otherTextsAreRefused(_ text: String) { #expect(fault(text) != nil) }

  @Test func everyPrefixOfATextIsRefused() {
    let text = Array(#"{"to":"é🌍\n\u00e9\ud83d\ude06","n":[-1.5e+3,true,null,{}],"o":{"p":""}}"#.utf8)
    #expect(fault(text) == nil)
    for count in text.indices { #expect(fault(Array(text[..<count])) != nil) }
  }

  @Test func oneContainerMoreThanTheDepthIsRefused() {
    for depth in [1, 2, 16, 64] {
      let fits = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      #expect(fault(fits, depthMax: depth) == nil)
      #expect(fault("[" + fits + "]", depthMax: depth) == JSONFault(.tooDeep, at: depth))
      let objects =
        String(repeating: "{\"a\":", count: depth - 1) + "{}" + String(repeating: "}", count: depth - 1)
      #expect(fault(objects, depthMax: depth) == nil)
      #expect(fault("[" + objects + "]", depthMax: depth)?.reason == .tooDeep)
    }
  }

  @Test func aHostileDepthEndsAtTheBound() {
    #expect(fault(Array(repeating: UInt8(ascii: "["), count: 1_000_000))?.reason == .tooDeep)
    #expect(fault(Array(String(repeating: "{\"a\":", count: 200_000).utf8))?.reason == .tooDeep)
  }

  @Test func controlCharactersInStringsAreRefusedAtEveryPlace() {
    for byte in UInt8(0)..<0x20 {
      for lead in 0..<17 {
        let text =
          [UInt8(ascii: "\"")] + Array(repeating: UInt8(ascii: "a"), count: lead) + [
            byte, UInt8(ascii: "\""),
          ]
        #expect(fault(text) == JSONFault(.controlCharacter, at: lead + 1))
      }
    }
    #expect(fault("\"\u{7F}\"") == nil)
  }

  @Test(arguments: ["\\x", "\\'", "\\0", "\\u12g4", "\\U0041", "\\ ", "\\u+123"])
  func unknownEscapesAreRefused(_ escape: String) {
    #expect(fault("\"\(escape)\"")?.reason == .invalidEscape)
  }

  @Test(arguments: [
    "\\ud83d", "\\ude06", "\\ud83dx", "\\ud83d\\n", "\\ud83d\\u0041", "\\ude06\\ud83d",
    "\\ud83d\\ud83d\\ude06",
    "\\uDFFF", "\\uD800",
  ])
  func halfASurrogatePairIsRefused(_ text: String) {
    #expect(fault("\"\(text)\"")?.reason == .loneSurrogate)
  }

  @Test func utf8IsHeldToItsShortestFormAndRange() {
    // The table of RFC 3629 section 4, first and last of each row, and their neighbours.
    let good: [[UInt8]] = [
      [0x7F], [0xC2, 0x80], [0xDF, 0xBF], [0xE0, 0xA0, 0x80], [0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80],
      [0xEF, 0xBF, 0xBF], [0xF0, 0x90, 0x80, 0x80], [0xF4, 0x8F, 0xBF, 0xBF],
    ]
    let bad: [[UInt8]] = [
      [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x7F], [0xC2, 0xC0], [0xE0, 0x9F, 0xBF],
      [0xE0, 0xA0], [0xE1, 0x80, 0x7F], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF],
      [0xF0, 0x90, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFE], [0xFF],
    ]
    let quote = UInt8(ascii: "\"")
    for pad in 0..<9 {
      let lead = Array(repeating: UInt8(ascii: "a"), count: pad)
      for bytes in good { #expect(fault([quote] + lead + bytes + [quote]) == nil) }
      for bytes in bad {
        #expect(fault([quote] + lead + bytes + [quote]) == JSONFault(.invalidUTF8, at: pad + 1), "\(bytes)")
      }
    }
  }

  @Test func faultsNameTheirPlaceAndNotTheText() {
    let fault = fault(#"{"a": secret}"#)
    #expect(fault?.description == "unexpected character at byte 6")
  }
}
