import PushModel
import Seams
import Testing

@Suite struct TargetTests {
  @Test func madeTokensAreWellFormedAndDistinct() {
    var chance = SeededChance(seed: 1)
    var seen: Set<String> = []
    for _ in 0..<200 {
      let token = RegistrationToken(random: (0..<48).map { _ in UInt8.random(in: 0...255, using: &chance) })
      #expect(token.text.utf8.count == 72)
      #expect(RegistrationToken(token.text) == token)
      #expect(seen.insert(token.text).inserted)
      let key = NotificationKey(random: (0..<32).map { _ in UInt8.random(in: 0...255, using: &chance) })
      #expect(NotificationKey(key.text) == key)
    }
    #expect(
      RegistrationToken(random: [0xF8] + Array(repeating: 0, count: 47)).text.hasPrefix("AA"),
      "no dash in front")
    #expect(
      RegistrationToken(random: Array(repeating: 0, count: 48)).text.hasPrefix(
        "AAAAAAAAAAAAAAAAAAAAAA:APA91bAAAA"))
    #expect(
      RegistrationToken(random: Array(repeating: 255, count: 48)).text.hasPrefix(
        "_____________________w:APA91b____"))
  }

  @Test func tokensHideThemselvesInDescriptions() {
    #expect(RegistrationToken(Sample.token).map { "\($0)" } == "abcdefgh…")
  }

  @Test func everyOtherByteAndLengthIsNoToken() {
    let good = Array(Sample.token.utf8)
    func isToken(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { RegistrationToken.isWellFormed($0) } }
    #expect(isToken(good))
    for at in good.indices {
      for byte: UInt8 in [
        0, UInt8(ascii: " "), UInt8(ascii: "."), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "@"),
        UInt8(ascii: "["), UInt8(ascii: "`"), UInt8(ascii: "{"), 0x80, 0xFF,
      ] {
        var changed = good
        changed[at] = byte
        #expect(!isToken(changed))
      }
      #expect(!isToken(Array(good[..<at])))
    }
    #expect(!isToken(good + [UInt8(ascii: "a")]))
  }

  @Test func aTokenThatIsCutIsABadRegistration() {
    for to in [
      String(Sample.token.dropLast()), Sample.token + "a", "dev-A:t", "x", "/topic/x", "/users/", "/topics/",
      " " + Sample.token, "'news' in topics", "APA91b",
    ] {
      #expect(
        nack("{\"message_id\":\"m-1\",\"to\":\"\(to)\"}", .badRegistration)
          == "Invalid token on 'to' field: \(to.prefix(63) + (to.count > 64 ? "…" : ""))")
    }
  }

  @Test func eachFormOfToIsToldApart() {
    func target(_ to: String) -> Target? { taken("{\"message_id\":\"m-1\",\"to\":\"\(to)\"}")?.target }
    #expect(target("/topics/a-Z_0.~%") == TopicName("a-Z_0.~%").map(Target.topic))
    #expect(target(#"\/topics\/news"#) == TopicName("news").map(Target.topic))
    #expect(target("/users/anna é") == .user("anna é"))
    #expect(target(Sample.key) == NotificationKey(Sample.key).map(Target.group))
    #expect(target(Sample.token) == RegistrationToken(Sample.token).map(Target.token))
  }

  @Test func namesHaveTheirLimits() {
    func isTaken(_ to: String) -> Bool { taken("{\"message_id\":\"m-1\",\"to\":\"\(to)\"}") != nil }
    #expect(isTaken("/topics/" + String(repeating: "a", count: 900)))
    #expect(!isTaken("/topics/" + String(repeating: "a", count: 901)))
    #expect(isTaken("/users/" + String(repeating: "u", count: 256)))
    #expect(!isTaken("/users/" + String(repeating: "u", count: 257)))
    for byte in UInt8(0x20)..<0x7F where byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\") {
      let letter = Character(UnicodeScalar(byte))
      let legal = letter.isLetter || letter.isNumber || "-_.~%".contains(letter)
      #expect(isTaken("/topics/a\(letter)") == legal)
    }
    #expect(!isTaken("/topics/é"))
  }

  @Test func oneTargetIsNeededAndNoMore() {
    #expect(nack(#"{"message_id":"m-1"}"#) == "InvalidJson: Missing Required Field: to")
    #expect(
      nack(#"{"message_id":"m-1","to":"","condition":""}"#) == "InvalidJson: Missing Required Field: to")
    #expect(
      nack(Sample.message(#""condition":"'a' in topics""#))
        == "InvalidJson: Only one target field may be used")
    #expect(taken(Sample.message(#""condition":"""#)) != nil)
  }

  @Test func codesSayWhatToDo() {
    #expect(NackCode.allCases.filter(\.isSent).count == 11)
    #expect(NackCode.remedy(for: "SERVICE_UNAVAILABLE") == .retryLater)
    #expect(NackCode.remedy(for: "CONNECTION_DRAINING") == .resendElsewhere)
    #expect(NackCode.remedy(for: "SOMETHING_NEW") == .retryLater)
    #expect(NackCode.remedy(for: "QUOTA_EXCEEDED") == .slowDown)
    for reason in Refusal.Reason.allCases { #expect(reason.nack.isSent) }
    #expect(Set(Refusal.Reason.allCases.map(\.nack)) == Set(NackCode.allCases.filter(\.isSent)))
  }
}
