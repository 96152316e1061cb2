import PushModel
import Testing

/// What may be in `data`, how it is counted and how it reaches the device.
@Suite struct PayloadTests {
  private func data(_ value: String, key: String = "b") -> String {
    Sample.message("\"data\":{\"\(key)\":\"\(value)\"}")
  }

  // MARK: Size

  @Test(arguments: ["a", "é", "語", "🌍", #"\""#, #"\u00e9"#, #"\ud83c\udf0d"#, #"\\"#])
  func sizeIsCountedInDecodedBytes(_ unit: String) {
    let width =
      ["a": 1, "é": 2, "語": 3, "🌍": 4, #"\""#: 1, #"\u00e9"#: 2, #"\ud83c\udf0d"#: 4, #"\\"#: 1][unit] ?? 0
    let count = 4095 / width
    let rest = 4095 % width
    let full = String(repeating: unit, count: count) + String(repeating: "x", count: rest)
    #expect(taken(data(full))?.payloadBytes == 4096)
    #expect(nack(data(full + "x")) == "MessageTooBig: payload of 4097 bytes, limit 4096")
  }

  @Test func fourThousandQuotesPass() {
    #expect(taken(data(String(repeating: #"\""#, count: 4090)))?.payloadBytes == 4091)
  }

  @Test func namesAndNotificationCountToo() {
    let key = String(repeating: "k", count: 2000)
    let fits = String(repeating: "v", count: 2096 - 7)
    #expect(
      taken(Sample.message(#""data":{"\#(key)":"\#(fits)"},"notification":{"body":"abc"}"#))?.payloadBytes
        == 4096)
    #expect(
      nack(Sample.message(#""data":{"\#(key)":"\#(fits)"},"notification":{"body":"abcd"}"#))
        == "MessageTooBig: payload of 4097 bytes, limit 4096")
  }

  @Test func otherValuesCountTheirText() {
    #expect(
      taken(Sample.message(#""data":{"a":1.50,"b":true,"c":null,"d":[1, 2],"e":{"x":1}}"#))?.payloadBytes == 5
        + 4 + 4 + 4 + 6 + 7)
  }

  @Test func topicsHaveALimitOfTheirOwn() {
    var limits = Limits()
    limits.topicPayloadBytesMax = 2048
    for target in [#""to":"/topics/news""#, #""condition":"'news' in topics""#] {
      func text(_ bytes: Int) -> String {
        "{\(target),\"message_id\":\"m-1\",\"data\":{\"b\":\"\(String(repeating: "x", count: bytes - 1))\"}}"
      }
      #expect(taken(text(2048), limits: limits)?.payloadBytes == 2048)
      #expect(nack(text(2049), limits: limits) == "MessageTooBig: payload of 2049 bytes, limit 2048")
      #expect(taken(text(2049))?.payloadBytes == 2049)
    }
  }

  // MARK: Reserved names

  @Test(arguments: [
    "from", "message_type", "google", "google.x", "googlemap", "gcm", "gcmx", "gcm.notification.title",
    #"fr\u006fm"#,
  ])
  func reservedNamesAreRefusedAndNamed(_ key: String) {
    let shown = key == #"fr\u006fm"# ? "from" : key
    #expect(nack(data("1", key: key)) == "InvalidDataKey: \(shown)")
  }

  @Test(arguments: [
    "From", "fromage", "googly", "Google.x", "gc", "message_typ", "message_types", "", "to", "collapse_key",
    "notification", "GCM",
  ])
  func lookAlikesPass(_ key: String) {
    #expect(taken(data("1", key: key)) != nil)
  }

  @Test(arguments: [
    ("gcm", false), ("gcmx", false), ("googly", false), ("google", false), ("google.x", true),
    ("gcm.notification.a", true), ("from", true), ("message_type", true),
  ])
  func theCurrentInterfaceReservesLess(_ key: String, _ reserved: Bool) {
    #expect(Array(key.utf8).withUnsafeBytes { ReservedKeys.v1.contains($0) } == reserved)
  }

  @Test func reservedNamesDeeperDownAreFree() {
    #expect(taken(Sample.message(#""data":{"a":{"from":"x"}}"#)) != nil)
  }

  // MARK: Values

  @Test func stringsReachTheDeviceAsTheyCame() {
    #expect(
      taken(Sample.message(#""data":{ "a":"\u00e9\/" }"#))?.tail.hasSuffix(#","data":{ "a":"\u00e9\/" }}"#)
        == true)
  }

  @Test func otherValuesReachTheDeviceAsStringsWithTheirDigits() {
    let text = Sample.message(
      #""data":{"a":1000000000000000001,"b":9007199254740993,"c":18446744073709551615,"d":18446744073709551616,"e":-9223372036854775808,"f":1.10,"g":true,"h":null,"i":[1, "x"],"j":{"k":"\u00e9"},"l":"s","m":1e400}"#
    )
    #expect(
      taken(text)?.tail.hasSuffix(
        #","data":{"a":"1000000000000000001","b":"9007199254740993","c":"18446744073709551615","d":"18446744073709551616","e":"-9223372036854775808","f":"1.10","g":"true","i":"[1, \"x\"]","j":"{\"k\":\"\\u00e9\"}","l":"s","m":"1e400"}}"#
      )
        == true)
    #expect(
      taken(Sample.message(#""data":{"h":null,"a":1}"#))?.tail.hasSuffix(#","data":{"a":"1"}}"#) == true)
    #expect(taken(Sample.message(#""data":{"h":null}"#))?.tail.hasSuffix(#","data":{}}"#) == true)
  }

  @Test(arguments: [#"\ud83d\ude06"#, "😆"])
  func anEmojiIsOneCharacterHoweverWritten(_ raw: String) {
    let draft = taken(data(raw))
    #expect(draft?.payloadBytes == 5)
    var reader = DeviceDeliveryReader()
    let json = Array(("{\"message_id\":\"x\"" + (draft?.tail ?? "")).utf8)
    guard case .message(let message) = json.withUnsafeBytes({ try? reader.read($0) }) else {
      Issue.record("no message")
      return
    }
    #expect(message.data == ["b": "😆"])
  }

  @Test func anUnmatchedSurrogateIsRefused() {
    #expect(
      read(data(#"\ud83d"#))
        == .stanzaError("InvalidJson: JSON_PARSING_ERROR : half a surrogate pair at byte 113\n"))
  }

  // MARK: Time to live

  @Test(arguments: [("0", 0), ("1", 1), ("2419200", 2_419_200), ("-0", 0)])
  func timesInRangePass(_ text: String, _ seconds: Int) {
    let draft = taken(Sample.message("\"time_to_live\":\(text)"))
    #expect(draft?.timeToLive == seconds)
    #expect(draft?.tail.contains("\"ttl\":\(seconds)") == true)
  }

  @Test func aMissingTimeIsFourWeeks() {
    #expect(taken(Sample.message())?.timeToLive == 2_419_200)
  }

  @Test(arguments: [
    "-1", "2419201", "1.5", "600.0", "6e2", "99999999999999999999999", "-9223372036854775809",
  ])
  func timesOutOfRangeAreRefused(_ text: String) {
    #expect(
      nack(Sample.message("\"time_to_live\":\(text)"))
        == "InvalidJson: INVALID_TTL : Invalid value (\(text)) for \"time_to_live\": must be between 0 and 2419200"
    )
  }

  @Test func aTimeInAStringIsRefusedUnlessAllowed() {
    let refused = "InvalidJson: JSON_TYPE_ERROR : Field \"time_to_live\" must be a JSON java.lang.Number: "
    #expect(nack(Sample.message("\"time_to_live\":\"abc\"")) == refused + "abc")
    #expect(nack(Sample.message("\"time_to_live\":\"600\"")) == refused + "600")
    var limits = Limits()
    limits.coerceNumericStrings = true
    #expect(taken(Sample.message("\"time_to_live\":\"600\""), limits: limits)?.timeToLive == 600)
    #expect(nack(Sample.message("\"time_to_live\":\"abc\""), limits: limits) == refused + "abc")
    #expect(
      nack(Sample.message("\"time_to_live\":\"2419201\""), limits: limits)?.contains("INVALID_TTL") == true)
  }

  // MARK: Echo

  @Test func whatIsRepeatedIsBounded() {
    let long = String(repeating: "é", count: 500)
    let text = nack("{\"message_id\":\"m-1\",\"to\":\"\(long)\"}", .badRegistration)
    #expect(text == "Invalid token on 'to' field: " + String(repeating: "é", count: 63) + "…")
    for count in [63, 64, 65] {
      let shown = Array(String(repeating: "🌍", count: count).utf8).withUnsafeBytes { Echo.bounded($0, 64) }
      #expect(shown.unicodeScalars.count == min(count, 64))
      #expect(shown.hasSuffix(count > 64 ? "…" : "🌍"))
    }
  }
}
