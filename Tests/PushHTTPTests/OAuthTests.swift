import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Seams
import Testing

struct OAuthTests {
  let rules = AssertionRules(leewaySeconds: 300)
  let now = wall.ms / 1_000

  private func times(_ issued: Int64, _ expires: Int64) -> OAuthFault? {
    rules.checkTimes(["iat": .number(issued), "exp": .number(expires)], now: wall)
  }

  @Test func aClockThatRunsAheadIsForgivenFiveMinutes() {
    for ahead in [0, 3, 240, 300] as [Int64] { #expect(times(now + ahead, now + ahead + 3_600) == nil) }
    let late = times(now + 301, now + 3_000)
    #expect(late?.error == "invalid_grant")
    #expect(late?.description.hasSuffix("iat is 301 seconds ahead of the server's clock.") == true)
    #expect(
      AssertionRules(leewaySeconds: 1).checkTimes(
        ["iat": .number(now + 2), "exp": .number(now + 60)], now: wall) != nil)
  }

  @Test func anAssertionHoldsAnHourAtMost() {
    #expect(times(now, now + 3_600) == nil)
    #expect(times(now, now + 3_601)?.description.contains("3601 seconds after iat") == true)
    #expect(
      times(now - 3_660, now - 60)?.description.contains("60 seconds behind the server's clock") == true)
    #expect(times(now - 3_599, now + 1) == nil)
    #expect(times(now, now) != nil)
    #expect(times(now, now - 1) != nil)
  }

  @Test(arguments: [
    "{}", "{\"iat\":1}", "{\"iat\":\"1\",\"exp\":\"2\"}", "{\"iat\":-1,\"exp\":5}",
    "{\"iat\":1e300,\"exp\":1e301}",
    "{\"iat\":99999999999999999999,\"exp\":1}",
  ])
  func timesThatAreNoneAreRefused(_ text: String) throws {
    let fault = rules.checkTimes(try JSONValue(parsing: text), now: wall)
    #expect(fault?.description.contains("short-lived token (60 minutes)") == true)
  }

  @Test func googlesAudiencesAndTheServersOwnAreTaken() throws {
    for audience in [
      "https://oauth2.googleapis.com/token", "https://accounts.google.com/o/oauth2/token",
      "https://www.googleapis.com/oauth2/v4/token", "https://localhost:8443/token",
    ] {
      #expect(rules.checkAudience(["aud": .string(audience)], own: ["https://localhost:8443/token"]) == nil)
    }
    #expect(
      rules.checkAudience(["aud": ["https://x/", "https://oauth2.googleapis.com/token"]], own: []) == nil)
    #expect(rules.checkAudience(["aud": "https://x/"], own: [])?.error == "invalid_grant")
    #expect(rules.checkAudience([:], own: []) != nil)
  }

  @Test func scopesAreSeparatedByBlanks() {
    #expect(rules.scopes(["scope": "a  b"]) == ["a", "b"])
    #expect(rules.scopes(["scope": ""]) == nil)
    #expect(rules.scopes([:]) == nil)
  }

  @Test func aTokenIsTakenApart() throws {
    // {"alg":"RS256","kid":"k"} . {"iss":"a"} . 0xFF
    let token = try #require(JSONWebToken("eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJhIn0._w"))
    #expect(token.algorithm == "RS256")
    #expect(token.keyID == "k")
    #expect(token.claims["iss"] == "a")
    #expect(token.signature == [0xFF])
    #expect(
      String(decoding: token.signedBytes, as: UTF8.self)
        == "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJhIn0")
    for text in [
      "", "a.b", "a.b.c", "..", "eyJhbGciOiJSUzI1NiJ9.W10.AA", String(repeating: "a", count: 9_000),
    ] {
      #expect(JSONWebToken(text) == nil)
    }
  }

  @Test func base64OfTheURLAlphabetIsDecodedExactly() {
    for count in 0..<40 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 250) }
      #expect(Base64URLText.decoded(Base64URL.text(bytes[...]).utf8) == bytes)
    }
    #expect(Base64URLText.decoded("YQ==".utf8) == [97])
    for text in ["a", "YQ=a", "Y+==", "YQ==="] { #expect(Base64URLText.decoded(text.utf8) == nil) }
  }

  @Test func anAccessTokenIsBelievedOnlyWithItsCode() throws {
    func code(_ bytes: [UInt8]) -> [UInt8] {
      Array(repeating: bytes.reduce(7) { $0 &* 31 &+ $1 }, count: 32)
    }
    let token = AccessToken(sender: SenderID(100_000_000_001), maySend: true, expires: WallTime(ms: 5))
    let text = token.text(nonce: [1, 2, 3], code)
    #expect(AccessToken(text, code, areEqual: ==) == token)
    #expect(text != token.text(nonce: [4], code))
    var bytes = Array(text.utf8)
    for index in AccessTokenForm.prefixCount..<bytes.count {
      let kept = bytes[index]
      bytes[index] = kept == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      let changed = String(decoding: bytes, as: UTF8.self)
      // The last digit may hold bits that are not part of the text.
      if let read = AccessToken(changed, code, areEqual: ==) { #expect(read == token) }
      bytes[index] = kept
    }
    #expect(AccessToken("ya29.w.", code, areEqual: ==) == nil)
    #expect(AccessToken("x", code, areEqual: ==) == nil)
    #expect(AccessToken(text, { _ in [] }, areEqual: ==) == nil)
  }

  private enum AccessTokenForm { static let prefixCount = 7 }

  @Test func answersHaveNumbersWhereClientsCount() {
    let response = OAuthAnswer.token("t", expiresIn: 3_599)
    #expect(
      text(response)
        == "{\n  \"access_token\": \"t\",\n  \"expires_in\": 3599,\n  \"token_type\": \"Bearer\"\n}\n")
    #expect(response.fields["cache-control"] == "no-store")
    let fault = OAuthFault.badSignature.response
    #expect(fault.status == 400)
    #expect(
      text(fault)
        == "{\n  \"error\": \"invalid_grant\",\n  \"error_description\": \"Invalid JWT Signature.\"\n}\n")
  }

  @Test func credentialsAreReadAsClientsWriteThem() {
    func read(_ value: String?, query: [String: String] = [:]) -> HTTPCredential {
      var fields = HTTPFields()
      if let value { fields.append("Authorization", value) }
      return HTTPCredential(fields, query: query)
    }
    #expect(read("Bearer abc") == .bearer("abc"))
    #expect(read("bearer  abc") == .bearer("abc"))
    #expect(read("key=AAA:b") == .key("AAA:b"))
    #expect(read("KEY=AAA") == .key("AAA"))
    #expect(read(nil) == .missing)
    #expect(read("") == .missing)
    #expect(read("Basic eA==") == .other)
    #expect(read(nil, query: ["access_token": "q"]) == .bearer("q"))
  }
}
