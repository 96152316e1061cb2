import HTTPCore
import PushHTTP
import PushModel

/// `POST /batch`, as the Admin SDKs used it: up to 500 requests in one, answered together and in order.
///
/// Belongs to its loop.
final class BatchDoor {
  private var answers: [HTTPResponse?]
  private var left: Int
  private let boundary: String
  private let sink: HTTPSink

  private init(count: Int, boundary: String, _ sink: HTTPSink) {
    answers = Array(repeating: nil, count: count)
    left = count
    self.boundary = boundary
    self.sink = sink
  }

  /// - Parameter table: Of the server's routes.
  static func run(
    _ request: HTTPRequest, _ door: SendDoor, _ table: RouteTable, boundary: String,
    _ sink: HTTPSink
  ) {
    // The outer request alone carries the credential.
    switch HTTPCredential(request.fields) {
    case .missing: return sink(V1Answer.fault(.noCredentials))
    case .key, .other: return sink(V1Answer.fault(.badCredentials))
    case .bearer(let token):
      if case .failure(let fault) = door.grant(token) { return sink(V1Answer.fault(fault)) }
    }
    let parts: [BatchPart]
    do throws(BatchFault) {
      parts = try BatchRequest.parts(
        request.body, contentType: request.fields["content-type"],
        partsMax: door.context.limits.batchRequestsMax)
    } catch {
      return sink(V1Answer.fault(V1Fault(400, "INVALID_ARGUMENT", error.text)))
    }
    let batch = BatchDoor(count: parts.count, boundary: boundary, sink)
    for (index, part) in parts.enumerated() {
      let target = RequestTarget(part.target)
      guard case .found(.sendV1, let values) = table.match(part.method, target.path) else {
        batch.answered(index, V1Answer.fault(V1Fault(404, "NOT_FOUND", "Requested entity was not found.")))
        continue
      }
      var fields = HTTPFields()
      fields.append("authorization", request.fields["authorization"] ?? "")
      if let id = part.fields["x-weir-message-id"] { fields.append("x-weir-message-id", id) }
      door.sendV1(
        project: values.first ?? "", fields, query: [:], isPretty: target.isPretty, part.body,
        HTTPSink(send: { batch.answered(index, $0) }, cut: sink.cut, drain: sink.drain))
    }
  }

  private func answered(_ index: Int, _ response: HTTPResponse) {
    guard answers[index] == nil else { return }
    answers[index] = response
    left -= 1
    if left == 0 { sink(BatchAnswer.response(answers.compactMap(\.self), boundary: boundary)) }
  }
}
