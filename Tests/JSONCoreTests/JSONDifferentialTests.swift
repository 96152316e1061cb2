import Foundation
import JSONCore
import Testing

/// Small numbers from a seed, so that a failure can be run again.
private struct Chance: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    var mixed = state
    mixed = (mixed ^ (mixed >> 33)) &* 0xff51_afd7_ed55_8ccd
    return mixed ^ (mixed >> 33)
  }
}

/// This reader against Foundation's, which is another implementation by other people.
///
/// Where the two are known to differ on purpose, the text is left out of the comparison: a byte order mark and
/// texts with a zero byte (Foundation guesses UTF-16 and UTF-32), numbers outside a double's range and deep
/// nesting. Foundation also takes a comma before a closing bracket, which RFC 8259 does not.
@Suite struct JSONDifferentialTests {
  private static let seeds: [String] = [
    #"{"to":"dQw4:APA91b","message_id":"m-1","time_to_live":600,"data":{"a":"5 < 7","b":"é語🌍","n":-1.5e+3}}"#,
    #"[1,-0,0.5,1E5,true,false,null,"",{},[],[[]],{"a":{"b":[{"c":"d"}]}}]"#,
    #"{"e":"\ud83d\ude06\u00e9\n\t\"\\\/\b\f\r","k":"\u0041","x":"\u20ac"}"#,
    #"  {  "a"  :  [  1  ,  2  ]  ,  "b"  :  {  }  }  "#,
    #""string""#, "12345678901234567", "-0.0", "true", "[]",
  ]
  private static let tokens = [
    "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "\\ude06", "0", "1", "-", "+", ".", "e", "E5",
    "true",
    "null", " ", "\n", "é", "🌍", "\u{7F}", "\\n", "\\x", "/", "\"a\":1", "\u{FFFF}",
  ].map { Array($0.utf8) }

  private static func mutated(_ chance: inout Chance) -> [UInt8] {
    var text = Array(seeds[Int.random(in: seeds.indices, using: &chance)].utf8)
    for _ in 0..<Int.random(in: 0...3, using: &chance) where !text.isEmpty {
      let at = Int.random(in: text.indices, using: &chance)
      switch Int.random(in: 0..<6, using: &chance) {
      case 0: text[at] = UInt8.random(in: 1...255, using: &chance)
      case 1: text.remove(at: at)
      case 2: text.insert(contentsOf: tokens[Int.random(in: tokens.indices, using: &chance)], at: at)
      case 3: text.removeSubrange(at...)
      case 4: text.insert(contentsOf: text[..<min(at, 12)], at: at)
      default: text[at] ^= 1 << UInt8.random(in: 0..<8, using: &chance)
      }
    }
    return text
  }

  private static func theirs(_ text: [UInt8]) -> Any? {
    try? JSONSerialization.jsonObject(with: Data(text), options: [.fragmentsAllowed])
  }

  private static func isLeftOut(_ text: [UInt8], _ ours: JSONValue?) -> Bool {
    if text.contains(0) || text.starts(with: [0xEF, 0xBB, 0xBF]) { return true }
    if text.starts(with: [0xFE, 0xFF]) || text.starts(with: [0xFF, 0xFE]) { return true }
    func odd(_ value: JSONValue) -> Bool {
      switch value {
      case .number(let text):
        Double(text).map { $0.isInfinite || ($0 == 0 && text.contains { "123456789".contains($0) }) } ?? true
      case .array(let elements): elements.contains(where: odd)
      case .object(let members): members.contains { odd($0.value) }
      default: false
      }
    }
    return ours.map(odd) ?? false
  }

  private static func isSame(_ ours: JSONValue, _ theirs: Any) -> Bool {
    switch ours {
    case .null: return theirs is NSNull
    case .bool(let value): return (theirs as? NSNumber)?.boolValue == value
    case .number(let text):
      guard let number = theirs as? NSNumber, let value = Double(text) else { return false }
      return abs(number.doubleValue - value) <= abs(value) * 1e-14
    case .string(let value):
      guard let text = theirs as? String else { return false }
      return Array(text.utf8) == Array(value.utf8)
    case .array(let elements):
      guard let array = theirs as? [Any], array.count == elements.count else { return false }
      return zip(elements, array).allSatisfy { isSame($0, $1) }
    case .object(let members):
      guard let object = theirs as? [String: Any] else { return false }
      let names = Set(members.map(\.name))
      // Of a name that stands twice Foundation may keep either.
      return object.count == names.count
        && names.allSatisfy { name in
          guard let value = object[name] else { return false }
          return members.contains { $0.name == name && isSame($0.value, value) }
        }
    }
  }

  /// The text is JSON once commas before closing brackets are taken out.
  private static func hasCommaBeforeEnd(_ text: [UInt8]) -> Bool {
    var text = text
    while true {
      do throws(JSONFault) {
        _ = try JSONValue(parsing: text)
        return true
      } catch {
        guard error.reason == .unexpectedByte,
          let end = text.indices.contains(error.offset) ? text[error.offset] : nil,
          end == UInt8(ascii: "]") || end == UInt8(ascii: "}"),
          let comma = text[..<error.offset].lastIndex(where: { ![0x20, 0x0A, 0x0D, 0x09].contains($0) }),
          text[comma] == UInt8(ascii: ",")
        else { return false }
        text.remove(at: comma)
      }
    }
  }

  @Test func foundationAcceptsRefusesAndReadsTheSame() {
    var chance = Chance(state: 20_240_620)
    var accepted = 0
    var refused = 0
    for round in 0..<50_000 {
      let text = Self.mutated(&chance)
      let ours = try? JSONValue(parsing: text)
      guard !Self.isLeftOut(text, ours) else { continue }
      let theirs = Self.theirs(text)
      let shown = String(decoding: text, as: UTF8.self)
      switch (ours, theirs) {
      case (let ours?, let theirs?):
        accepted += 1
        if !Self.isSame(ours, theirs) { Issue.record("round \(round) differs: \(shown)") }
      case (nil, nil): refused += 1
      case (nil, _?) where Self.hasCommaBeforeEnd(text): refused += 1
      case (nil, _?): Issue.record("round \(round) refused here: \(shown)")
      case (_?, nil): Issue.record("round \(round) refused there: \(shown)")
      }
    }
    #expect(accepted > 5_000)
    #expect(refused > 5_000)
  }
}
