import Bytes
package import HTTPCore

/// Writes the response to a batch: a part for each request, in their order.
package enum BatchAnswer {
  /// - Parameter boundary: Stands in no body; letters, digits, `-` and `_`.
  package static func response(_ answers: [HTTPResponse], boundary: String) -> HTTPResponse {
    var writer = ByteWriter(capacity: 256 * answers.count + 64)
    for (index, answer) in answers.enumerated() {
      writer.append("--\(boundary)\r\nContent-Type: application/http\r\nContent-ID: response-")
      writer.append(decimal: Int64(index + 1))
      writer.append("\r\n\r\n")
      HTTPWriter.appendStatusLine(answer.status, to: &writer)
      for field in answer.fields.all {
        HTTPWriter.append(titled(field.name), field.value, to: &writer)
      }
      writer.append("Content-Length: ")
      writer.append(decimal: Int64(answer.body.count))
      writer.append("\r\n\r\n")
      writer.append(answer.body)
      writer.append("\r\n")
    }
    writer.append("--\(boundary)--\r\n")
    var fields = HTTPFields()
    fields.append("content-type", "multipart/mixed; boundary=\(boundary)")
    return HTTPResponse(status: 200, fields: fields, body: writer.take())
  }

  /// `content-type` as `Content-Type`: some readers of batches compare with case.
  private static func titled(_ name: String) -> String {
    name.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(separator: "-")
  }
}
