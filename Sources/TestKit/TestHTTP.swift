import Connections
import HTTPCore
import JSONCore
import Synchronization
import TLSCore

/// An answer to an HTTP request.
public struct TestHTTPAnswer: Sendable {
  /// Status code.
  public var status: Int
  /// Names in lower case; the last of equal names.
  public var headers: [String: String]
  /// As text.
  public var body: String
}

/// An answer that a test did not want.
public struct TestHTTPFailure: Error, Sendable, CustomStringConvertible {
  /// The answer.
  public let answer: TestHTTPAnswer
  init(_ answer: TestHTTPAnswer) { self.answer = answer }
  /// Its status and its body.
  public var description: String { "status \(answer.status): \(answer.body)" }
}

/// One request a connection, over the project's own client exchange.
enum TestHTTP {
  static func request(
    port: Int, authority: String?, _ method: String, _ target: String, headers: [String: String],
    body: String,
    within time: Duration
  ) async throws -> TestHTTPAnswer {
    let line = try await TestLine.connect(port: port, authority: authority, protocols: [], within: time)
    defer { line.abort() }
    var fields = HTTPFields()
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) { fields.append(name, value) }
    line.send(
      HTTPClientExchange.requestBytes(
        HTTPRequest(method: method, target: target, fields: fields, body: Array(body.utf8)),
        host: "localhost:\(port)"))
    // The connection is closed after the answer, so all that comes is the answer.
    let bytes = try await line.inbox.wait(for: "the answer to \(method) \(target)", within: time) { inbox in
      inbox.end == nil ? nil : inbox.bytes
    }
    let exchange = HTTPClientExchange(method: method)
    let whole = try bytes.withUnsafeBytes { try exchange.receive($0) }
    guard let response = try whole ?? exchange.receiveEnd() else { throw HTTPFault.cut }
    var found: [String: String] = [:]
    for field in response.fields.all { found[field.name] = field.value }
    return TestHTTPAnswer(
      status: response.status, headers: found, body: String(decoding: response.body, as: UTF8.self))
  }
}
