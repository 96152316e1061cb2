import Bytes
import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Testing

struct LegacyTests {
  private func reading(
    _ body: String, type: String? = "application/json", id: String? = nil, limits: Limits = Limits()
  ) -> LegacyReading {
    var reader = LegacyReader(limits: limits)
    var fields = HTTPFields()
    if let type { fields.append("content-type", type) }
    if let id { fields.append("x-weir-message-id", id) }
    return reader.read(Array(body.utf8), fields, multicastID: 108)
  }

  private func send(
    _ body: String, type: String? = "application/json", id: String? = nil,
    at: SourceLocation = #_sourceLocation
  ) throws -> LegacySend {
    switch reading(body, type: type, id: id) {
    case .send(let send): return send
    case .answer(let response):
      Issue.record("refused: \(text(response))", sourceLocation: at)
      throw NotRefused()
    }
  }

  private func answer(
    _ body: String, type: String? = "application/json", id: String? = nil, limits: Limits = Limits(),
    at: SourceLocation = #_sourceLocation
  ) throws -> HTTPResponse {
    switch reading(body, type: type, id: id, limits: limits) {
    case .answer(let response): return response
    case .send:
      Issue.record("taken: \(body)", sourceLocation: at)
      throw NotRefused()
    }
  }

  @Test func tokensAreTakenInTheirOrderUpToAThousand() throws {
    let ids = (0..<1_000).map { "\"t\($0)\"" }.joined(separator: ",")
    #expect(try send("{\"registration_ids\":[\(ids)]}").tokens?.last == "t999")
    let more = try answer("{\"registration_ids\":[\(ids),\"one\"]}")
    #expect(more.status == 400)
    #expect(text(more) == "Number of messages on bulk (1001) exceeds maximum allowed (1000)\n")
  }

  @Test(arguments: [
    ("{\"registration_ids\":[]}", "\"registration_ids\" field cannot be empty\n"),
    (
      "{\"registration_ids\":\"a\"}", "JSON_TYPE_ERROR : Field \"registration_ids\" must be a JSON array: a\n"
    ),
    ("{\"registration_ids\":[1]}", "Field \"registration_ids\" must hold strings only\n"),
    ("{\"registration_ids\":[\"a\"],\"to\":\"b\"}", "Only one target field may be used\n"),
    ("{\"to\":1}", "JSON_TYPE_ERROR : Field \"to\" must be a JSON java.lang.String: 1\n"),
    (
      "{\"to\":\"a\",\"dry_run\":\"x\"}",
      "JSON_TYPE_ERROR : Field \"dry_run\" must be a JSON java.lang.Boolean: x\n"
    ),
    (
      "{\"to\":\"a\",\"time_to_live\":\"600\"}",
      "JSON_TYPE_ERROR : Field \"time_to_live\" must be a JSON java.lang.Number: 600\n"
    ),
    ("[]", "JSON_PARSING_ERROR : not a JSON object\n"),
    ("", "JSON_PARSING_ERROR : unexpected end at byte 0\n"),
    (
      "{\"to\":\"a\",\"message_id\":1}",
      "JSON_TYPE_ERROR : Field \"message_id\" must be a JSON java.lang.String: 1\n"
    ),
    (
      "{\"condition\":\"\\\"news\\\" in topics\"}",
      "Invalid condition: expected 'topic' in topics, ! or ( at column 1\n"
    ),
  ])
  func aRequestAtFaultIsToldInPlainText(_ body: String, _ wanted: String) throws {
    let response = try answer(body)
    #expect(response.status == 400)
    #expect(response.fields["content-type"] == "text/plain; charset=UTF-8")
    #expect(text(response) == wanted)
  }

  @Test(arguments: [
    ("{}", "MissingRegistration"), ("{\"to\":\"\"}", "MissingRegistration"),
    ("{\"to\":\"short\"}", "InvalidRegistration"),
    ("{\"to\":\"'news' in topics\"}", "InvalidRegistration"),
    ("{\"to\":\"\(token)\",\"time_to_live\":-1}", "InvalidTtl"),
    ("{\"to\":\"\(token)\",\"data\":{\"from\":\"x\"}}", "InvalidDataKey"),
    ("{\"to\":\"\(token)\",\"data\":{\"gcmx\":\"x\"}}", "InvalidDataKey"),
    ("{\"to\":\"\(token)\",\"data\":{\"a\":\"\(String(repeating: "x", count: 4_096))\"}}", "MessageTooBig"),
  ])
  func aMessageAtFaultIsAResult(_ body: String, _ error: String) throws {
    let response = try answer(body)
    #expect(response.status == 200)
    #expect(
      text(response)
        == "{\"multicast_id\":108,\"success\":0,\"failure\":1,\"canonical_ids\":0,\"results\":[{\"error\":\"\(error)\"}]}"
    )
  }

  @Test func everyTokenOfARefusedMulticastHasAResult() throws {
    let response = try answer("{\"registration_ids\":[\"a\",\"b\"],\"data\":{\"from\":\"x\"}}")
    let value = try JSONValue(parsing: response.body)
    #expect(value["results"] == [["error": "InvalidDataKey"], ["error": "InvalidDataKey"]])
    #expect(value["failure"]?.int == 2)
    let topic = try answer("{\"to\":\"/topics/a\",\"data\":{\"from\":\"x\"}}")
    #expect(text(topic) == "{\"error\":\"InvalidDataKey\"}")
  }

  @Test func conditionsWithOneTopicAreConditions() throws {
    for condition in [
      "'news' in topics", "('news' in topics)", "'a' in topics&&('b' in topics||'c' in topics)",
    ] {
      guard case .condition = try send("{\"condition\":\"\(condition)\"}").draft.target else {
        Issue.record("not a condition: \(condition)")
        return
      }
    }
  }

  @Test func numbersInDataKeepTheirDigits() throws {
    let send = try send(
      "{\"to\":\"\(token)\",\"data\":{\"a\":1000000000000000001,\"d\":18446744073709551616}}")
    let data = try #require(send.draft.data)
    let raw = send.text.withUnsafeBytes { String(decoding: data.raw(in: $0), as: UTF8.self) }
    #expect(raw == "{\"a\":1000000000000000001,\"d\":18446744073709551616}")
    #expect(send.draft.has(.convertsData))
  }

  // MARK: Plain text

  @Test func aFormIsTakenWithAndWithoutAType() throws {
    let body =
      "registration_id=\(token.replacing(":", with: "%3A"))&collapse_key=k+1&time_to_live=60&data.a=5%25&dry_run=1"
    for type in [nil, "application/x-www-form-urlencoded;charset=UTF-8", "text/plain"] {
      let send = try send(body, type: type)
      #expect(send.form == .plainText)
      #expect(send.draft.timeToLive == 60)
      #expect(send.draft.has(.dryRun))
      let (key, data) = try send.text.withUnsafeBytes { text in
        (
          try #require(send.draft.collapseKey).string(in: text),
          String(decoding: try #require(send.draft.data).raw(in: text), as: UTF8.self)
        )
      }
      #expect(key == "k 1")
      #expect(data == "{\"a\":\"5%\"}")
    }
  }

  @Test(arguments: [
    ("", 200, "Error=MissingRegistration"), ("registration_id=x", 200, "Error=InvalidRegistration"),
    ("registration_id=\(token)&data.from=x", 200, "Error=InvalidDataKey"),
    ("registration_id=\(token)&time_to_live=9999999", 200, "Error=InvalidTtl"),
    ("{\"to\":\"\(token)\"}", 200, "Error=MissingRegistration"),
  ])
  func aFormAtFaultIsToldInOneLine(_ body: String, _ status: Int, _ wanted: String) throws {
    let response = try answer(body, type: nil)
    #expect(response.status == status)
    #expect(text(response) == wanted)
  }

  @Test func aFormWithTheSameNameTwiceIsRefused() throws {
    #expect(try answer("data.a=1&data.a=2", type: nil).status == 400)
  }

  @Test func anotherTypeOfBodyIsRefused() throws {
    #expect(try answer("{}", type: "application/xml").status == 400)
  }

  // MARK: Ids

  @Test func theHeaderNamesTheMessageBeforeTheBody() throws {
    let body = "{\"to\":\"\(token)\",\"message_id\":\"body\"}"
    #expect(try send(body).messageID == "body")
    #expect(try send(body, id: "head").messageID == "head")
    #expect(try send("{\"to\":\"\(token)\"}").messageID == nil)
    for id in ["", "a b", "é", String(repeating: "x", count: 256)] {
      #expect(try answer(body, id: id).status == 400)
    }
    var send = try send("{\"to\":\"\(token)\"}")
    send.setMessageID("q\"")
    let id = send.draft.reply.messageID
    #expect(send.text.withUnsafeBytes { id.string(in: $0) } == "q\"")
  }

  // MARK: Answers

  @Test func resultsKeepTheirOrder() {
    let response = LegacyAnswer.multicast(
      id: 9_223_372_036_854_775_807,
      [
        .sent(messageID: "0:1%a", canonical: "new"), .refused("NotRegistered"),
        .sent(messageID: "0:2%b", canonical: nil),
      ])
    #expect(
      text(response)
        == "{\"multicast_id\":9223372036854775807,\"success\":2,\"failure\":1,\"canonical_ids\":1,\"results\":[{\"message_id\":\"0:1%a\",\"registration_id\":\"new\"},{\"error\":\"NotRegistered\"},{\"message_id\":\"0:2%b\"}]}"
    )
    #expect(response.fields["content-type"] == "application/json; charset=UTF-8")
  }

  @Test func aTopicsIdIsANumber() {
    let sent = LegacyResult.sent(messageID: "x", canonical: nil)
    #expect(
      text(LegacyAnswer.topic(sent, number: "6538048937293473000")) == "{\"message_id\":6538048937293473000}")
    #expect(
      text(LegacyAnswer.topic(.refused("TopicsMessageRateExceeded"), number: "1"))
        == "{\"error\":\"TopicsMessageRateExceeded\"}")
  }

  @Test func groupsAreCounted() {
    #expect(text(LegacyAnswer.group(success: 2, failed: [])) == "{\"success\":2,\"failure\":0}")
    #expect(
      text(LegacyAnswer.group(success: 1, failed: ["a", "b"]))
        == "{\"success\":1,\"failure\":2,\"failed_registration_ids\":[\"a\",\"b\"]}")
  }

  @Test func plainAnswersAreLines() {
    #expect(text(LegacyAnswer.plain(.sent(messageID: "1:08", canonical: nil))) == "id=1:08")
    #expect(
      text(LegacyAnswer.plain(.sent(messageID: "1:08", canonical: "32"))) == "id=1:08\nregistration_id=32")
    #expect(text(LegacyAnswer.plain(.refused("NotRegistered"))) == "Error=NotRegistered")
    #expect(LegacyAnswer.plain(.refused("Unavailable")).status == 503)
    #expect(LegacyAnswer.plain(.refused("InternalServerError")).status == 500)
  }

  @Test func aWrongKeyIsToldInHTML() {
    let response = LegacyAnswer.unauthorized(isMissing: false)
    #expect(response.status == 401)
    #expect(response.fields["content-type"] == "text/html; charset=UTF-8")
    #expect(text(response).contains("<title>INVALID_KEY</title>"))
    #expect(text(response).contains("Error 401"))
  }

  @Test(arguments: NackCode.allCases)
  func everyNackHasAResult(_ code: NackCode) {
    #expect(!LegacyAnswer.error(for: code, "").isEmpty)
  }

  @Test func partsOfANamedMulticastAreKnownByTheirTokens() {
    let first = MessageNames.part(of: "m", tokenHash: .init(high: 1, low: 2))
    #expect(first == MessageNames.part(of: "m", tokenHash: .init(high: 1, low: 2)))
    #expect(first != MessageNames.part(of: "m", tokenHash: .init(high: 3, low: 2)))
    #expect(MessageNames.single(7, wall: wall) == "0:1700000000000007%0000000000000007")
  }
}
