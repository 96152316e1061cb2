import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Testing

struct BatchTests {
  private let type = "multipart/mixed; boundary=__END_OF_PART__"

  private func part(_ body: String, length: Int? = nil) -> String {
    """
    --__END_OF_PART__\r
    Content-Length: \(length ?? 200)\r
    Content-Type: application/http\r
    content-id: 1\r
    content-transfer-encoding: binary\r
    \r
    POST https://fcm.googleapis.com/v1/projects/p/messages:send HTTP/1.1\r
    Content-Length: \(length ?? body.utf8.count)\r
    Content-Type: application/json; charset=UTF-8\r
    \r
    \(body)\r

    """.replacing("\r\n", with: "\n").replacing("\r", with: "").replacing("\n", with: "\r\n")
  }

  private func parts(_ text: String, type: String? = nil, max: Int = 500) throws -> [BatchPart] {
    try BatchRequest.parts(Array(text.utf8), contentType: type ?? self.type, partsMax: max)
  }

  @Test func partsEndAtTheBoundaryWhateverTheirLengthSays() throws {
    let body = "{\"message\":{\"topic\":\"a\",\"data\":{\"e\":\"é語🌍\"}}}"
    // As a client that counts UTF-16 units says it, and plain wrong ones.
    for length in [body.utf16.count, 1, 100_000] {
      let found = try parts(
        part(body, length: length) + part("{}", length: length) + "--__END_OF_PART__--\r\n")
      #expect(found.count == 2)
      #expect(String(decoding: found[0].body, as: UTF8.self) == body)
      #expect(found[0].method == "POST")
      #expect(RequestTarget(found[0].target).path == ["v1", "projects", "p", "messages:send"])
      #expect(found[0].fields["content-type"] == "application/json; charset=UTF-8")
      #expect(String(decoding: found[1].body, as: UTF8.self) == "{}")
    }
  }

  @Test func pathsAndBareLineFeedsAndQuotedBoundariesAreTaken() throws {
    let text =
      "--b\nContent-Type: application/http\n\nPOST /v1/projects/p/messages:send HTTP/1.1\nHost: x\n\n{}\n--b--"
    let found = try parts(text, type: "multipart/mixed; charset=utf-8; Boundary=\"b\"")
    #expect(found.count == 1)
    #expect(found[0].target == "/v1/projects/p/messages:send")
  }

  @Test(arguments: [
    ("", "multipart/mixed; boundary=b"), ("--b--", "multipart/mixed; boundary=b"),
    ("--b\r\n\r\nPOST / HTTP/1.1\r\n\r\n{}", "multipart/mixed; boundary=b"),
    ("--b\r\n\r\nhello\r\n--b--", "multipart/mixed; boundary=b"),
    ("--b\r\n\r\nPOST /\r\n--b--", "multipart/mixed; boundary=b"),
    ("--b\r\nno colon\r\n\r\n--b--", "multipart/mixed; boundary=b"), ("--b--", "application/json"),
    ("--b--", "multipart/mixed"), ("--b--", "multipart/mixed; boundary="),
  ])
  func abatchAtFaultIsRefused(_ body: String, _ type: String) {
    #expect(throws: BatchFault.self) { try parts(body, type: type) }
  }

  @Test func moreThanTheMaximumIsRefused() throws {
    let text = part("{}") + part("{}") + part("{}") + "--__END_OF_PART__--"
    #expect(try parts(text, max: 3).count == 3)
    #expect(throws: BatchFault.self) { try parts(text, max: 2) }
  }

  @Test func cutBatchesNeverTrap() {
    let whole = Array((part("{\"a\":1}") + "--__END_OF_PART__--\r\n").utf8)
    for end in 0..<whole.count {
      _ = try? BatchRequest.parts(Array(whole[..<end]), contentType: type, partsMax: 5)
    }
  }

  @Test func answersStandInParts() {
    let ok = V1Answer.sent(project: "p", messageID: "1", isPretty: false)
    let bad = V1Answer.fault(.unregistered, isPretty: false)
    let response = BatchAnswer.response([ok, bad], boundary: "batch_1")
    #expect(response.fields["content-type"] == "multipart/mixed; boundary=batch_1")
    let found = text(response)
    #expect(
      found.hasPrefix(
        "--batch_1\r\nContent-Type: application/http\r\nContent-ID: response-1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json; charset=UTF-8\r\nContent-Length: \(ok.body.count)\r\n\r\n{\"name\""
      ))
    #expect(found.contains("Content-ID: response-2\r\n\r\nHTTP/1.1 404 Not Found\r\n"))
    #expect(found.hasSuffix("\r\n--batch_1--\r\n"))
  }
}
