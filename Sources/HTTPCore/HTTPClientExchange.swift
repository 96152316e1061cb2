import Bytes

/// One request and its response seen from a client, without a socket.
///
/// Write ``requestBytes(_:host:)``, feed what comes back, and call ``receiveEnd()`` when the server closes.
/// Interim responses (1xx) are skipped.
package final class HTTPClientExchange {
  private let parser: MessageParser
  private var isOver = false

  /// - Parameter method: Of the request; the answer to HEAD has no body.
  package init(method: String, limits: HTTPLimits = HTTPLimits()) {
    parser = MessageParser(.response, limits: limits)
    parser.expectsNoBody = method == "HEAD"
  }

  /// The bytes of a request, with `Host`, `Content-Length` and `Connection: close` added.
  package static func requestBytes(_ request: HTTPRequest, host: String) -> [UInt8] {
    var output = ByteWriter(capacity: 256 + request.body.count)
    HTTPWriter.appendSafe(request.method, to: &output)
    output.append(byte: 0x20)
    HTTPWriter.appendSafe(request.target, to: &output)
    output.append(" HTTP/1.1\r\n")
    HTTPWriter.append("host", host, to: &output)
    for field in request.fields.all { HTTPWriter.append(field.name, field.value, to: &output) }
    output.append("content-length: ")
    output.append(decimal: Int64(request.body.count))
    output.append("\r\nconnection: close\r\n\r\n")
    output.append(request.body)
    return output.take()
  }

  /// Takes bytes from the server.
  ///
  /// - Returns: The response once it is whole; what comes after it is not read.
  package func receive(_ bytes: UnsafeRawBufferPointer) throws(HTTPFault) -> HTTPResponse? {
    var offset = 0
    while offset < bytes.count && !isOver {
      let outcome = parser.feed(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
      offset += outcome.consumed
      if let fault = outcome.fault {
        isOver = true
        throw fault
      }
      guard outcome.isComplete else { return nil }
      if parser.status >= 200 { return complete() }
      parser.reset()
    }
    return nil
  }

  /// The server will send no more.
  ///
  /// - Returns: The response, if only the end of the connection ends it.
  /// - Throws: ``HTTPFault/cut`` if the response is not whole.
  package func receiveEnd() throws(HTTPFault) -> HTTPResponse? {
    guard !isOver else { return nil }
    guard parser.isHeadDone, parser.finish() else {
      isOver = true
      throw .cut
    }
    return complete()
  }

  private func complete() -> HTTPResponse {
    isOver = true
    return HTTPResponse(status: parser.status, fields: parser.fields, body: parser.body)
  }
}
