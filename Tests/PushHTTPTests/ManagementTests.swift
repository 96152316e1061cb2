import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Testing

struct ManagementTests {
  private func batch(_ body: String, limits: Limits = Limits()) -> Result<TopicBatch, ManagementFault> {
    do throws(ManagementFault) {
      return .success(try TopicBatch(Array(body.utf8), limits: limits))
    } catch {
      return .failure(error)
    }
  }

  @Test func topicsAreNamedWithAndWithoutTheirPrefix() throws {
    for to in ["/topics/news", "news"] {
      let found = try batch("{\"to\":\"\(to)\",\"registration_tokens\":[\"a\",\"b\"]}").get()
      #expect(found.topic.text == "news")
      #expect(found.tokens == ["a", "b"])
    }
  }

  @Test(arguments: [
    ("{\"to\":\"no name\",\"registration_tokens\":[\"a\"]}", "Topic name format is invalid"),
    ("{\"registration_tokens\":[\"a\"]}", "Topic name format is invalid"),
    ("{\"to\":\"a\"}", "MissingIIdToken"), ("{\"to\":\"a\",\"registration_tokens\":[]}", "MissingIIdToken"),
    ("{\"to\":\"a\",\"registration_tokens\":[1]}", "InvalidIIdToken"), ("x", "InvalidJson"),
  ])
  func aBatchAtFaultIsToldInABareString(_ body: String, _ error: String) {
    guard case .failure(let fault) = batch(body) else {
      Issue.record("taken: \(body)")
      return
    }
    #expect(fault.status == 400)
    #expect(text(fault.response) == "{\"error\":\"\(error)\"}")
  }

  @Test func moreThanAThousandTokensAreRefused() {
    let tokens = (0..<1_000).map { "\"\($0)\"" }.joined(separator: ",")
    guard case .success = batch("{\"to\":\"a\",\"registration_tokens\":[\(tokens)]}") else {
      Issue.record("refused")
      return
    }
    guard case .failure(let fault) = batch("{\"to\":\"a\",\"registration_tokens\":[\(tokens),\"x\"]}") else {
      Issue.record("taken")
      return
    }
    #expect(fault.text.hasPrefix("TooManyIIdTokens"))
  }

  @Test func resultsAreEmptyObjectsOrErrors() {
    #expect(
      text(TopicBatch.answer([.done, .error("NOT_FOUND"), .error("INVALID_ARGUMENT")]))
        == "{\"results\":[{},{\"error\":\"NOT_FOUND\"},{\"error\":\"INVALID_ARGUMENT\"}]}")
  }

  @Test(arguments: [
    (
      "{\"operation\":\"create\",\"notification_key_name\":\"n\",\"registration_ids\":[]}",
      "no valid registration ids"
    ),
    ("{\"operation\":\"create\",\"registration_ids\":[\"a\"]}", "notification_key_name is missing"),
    ("{\"operation\":\"add\",\"registration_ids\":[\"a\"]}", "notification_key is missing"),
    ("{\"operation\":\"join\"}", "operation must be create, add or remove"), ("[]", "InvalidJson"),
    (
      "{\"operation\":\"create\",\"notification_key_name\":1}",
      "notification_key_name must be a string of at most 1024 bytes"
    ),
  ])
  func aGroupCallAtFaultIsToldInABareString(_ body: String, _ error: String) {
    do throws(ManagementFault) {
      _ = try GroupCall(Array(body.utf8), limits: Limits())
      Issue.record("taken: \(body)")
    } catch {
      #expect(error.text == error.text)
      #expect(text(error.response) == "{\"error\":\"\(error.text)\"}")
    }
    #expect(throws: ManagementFault(error)) { try GroupCall(Array(body.utf8), limits: Limits()) }
  }

  @Test(arguments: [
    ("{}", "MissingApplication"), ("{\"application\":\"a\"}", "MissingApnsToken"),
    ("{\"application\":\"a\",\"apns_tokens\":[1]}", "InvalidApnsToken"), ("", "InvalidJson"),
  ])
  func anImportAtFaultIsToldInABareString(_ body: String, _ error: String) {
    #expect(throws: ManagementFault(error)) { try TokenImport(Array(body.utf8)) }
  }

  @Test func anImportTakesAHundredTokens() throws {
    let tokens = (0..<101).map { _ in "\"\(String(repeating: "a1", count: 32))\"" }
    func body(_ count: Int) -> [UInt8] {
      Array(
        "{\"application\":\"a\",\"sandbox\":true,\"apns_tokens\":[\(tokens.prefix(count).joined(separator: ","))]}"
          .utf8)
    }
    #expect(try TokenImport(body(100)).tokens.count == 100)
    #expect(throws: ManagementFault.self) { try TokenImport(body(101)) }
    #expect(TokenImport.isWellFormed(String(repeating: "aF", count: 32)))
    for token in ["", "zz", String(repeating: "a", count: 65)] { #expect(!TokenImport.isWellFormed(token)) }
  }
}
