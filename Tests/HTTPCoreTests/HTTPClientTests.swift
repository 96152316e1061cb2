import HTTPCore
import Testing

struct HTTPClientTests {
  /// The response to the input in every cut; nil if two cuts differ.
  private func answer(_ text: String, method: String = "GET", ends: Bool = false) throws -> HTTPResponse? {
    var answers: [Result<HTTPResponse?, HTTPFault>] = []
    for pieces in cuts(of: Array(text.utf8)) {
      let exchange = HTTPClientExchange(method: method)
      answers.append(
        Result { () throws(HTTPFault) in
          for piece in pieces {
            var response: HTTPResponse?
            var fault: HTTPFault?
            piece.withUnsafeBytes { bytes in
              do throws(HTTPFault) { response = try exchange.receive(bytes) } catch { fault = error }
            }
            if let fault { throw fault }
            if let response { return response }
          }
          return ends ? try exchange.receiveEnd() : nil
        })
    }
    let first = try #require(answers.first)
    #expect(answers.allSatisfy { $0 == first }, "cuts differ")
    return try first.get()
  }

  @Test func aResponseComesWithItsPartsHoweverItIsCut() throws {
    let response = try answer(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}surplus")
    #expect(
      response
        == HTTPResponse(
          status: 200, fields: ["Content-Type": "application/json", "Content-Length": "2"],
          body: Array("{}".utf8)))
  }

  @Test func interimResponsesAreSkipped() throws {
    let response = try answer(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    #expect(response?.status == 404)
  }

  @Test func aChunkedResponseIsJoined() throws {
    let response = try answer(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
    #expect(response?.body == Array("abc".utf8))
  }

  @Test func aResponseWithoutLengthEndsWithTheConnection() throws {
    #expect(try answer("HTTP/1.1 200 OK\r\n\r\nabc") == nil)
    #expect(try answer("HTTP/1.1 200 OK\r\n\r\nabc", ends: true)?.body == Array("abc".utf8))
  }

  @Test func aResponseThatIsCutIsAFault() throws {
    for text in [
      "", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "HTTP/1.1 200 OK\r\n",
    ] {
      #expect(throws: HTTPFault.cut) { try answer(text, ends: true) }
    }
  }

  @Test func theAnswerToHeadHasNoBody() throws {
    let response = try answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", method: "HEAD")
    #expect(response?.status == 200 && response?.body == [])
  }

  @Test(arguments: [
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "SSH-2.0-x\r\n",
    "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n",
  ])
  func aMalformedResponseIsAFault(_ text: String) {
    #expect(throws: HTTPFault.malformed) { try answer(text) }
  }

  @Test func aRequestIsWrittenWithItsLengthAndReadBackByTheServer() throws {
    let request = HTTPRequest(
      method: "POST", target: "/v1/projects/demo/registrations",
      fields: ["x-goog-api-key": "k\r\nx: y"], body: Array("{}".utf8))
    let bytes = HTTPClientExchange.requestBytes(request, host: "localhost:8443")
    let heard = try #require(talkAnyWay(bytes))
    let read = try #require(heard.requests.first)
    #expect(read.target == request.target && read.body == request.body && read.method == "POST")
    #expect(read.fields["host"] == "localhost:8443")
    #expect(read.fields["x-goog-api-key"] == "k  x: y")
    #expect(heard.isDone)
  }
}
