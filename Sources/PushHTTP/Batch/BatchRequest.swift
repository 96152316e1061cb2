package import HTTPCore

/// One request inside a batch.
package struct BatchPart: Sendable, Equatable {
  package var method: String
  /// A path, or a whole URL.
  package var target: String
  package var fields: HTTPFields
  package var body: [UInt8]
}

/// Why a batch is not run at all.
package struct BatchFault: Error, Hashable, Sendable {
  package var text: String
  init(_ text: String) { self.text = text }
}

/// Reads the body of `/batch`: parts of `application/http`, each a raw request.
///
/// Parts end at the boundary and nowhere else. Their `Content-Length`, and that of the requests inside, is not
/// looked at: one client counts UTF-16 units where it should count bytes.
/// - Source: RFC 2046 section 5.1; the requests that the Admin SDKs wrote.
package enum BatchRequest {
  /// - Parameters:
  ///   - contentType: Value of the header, with its boundary.
  ///   - partsMax: More are refused.
  package static func parts(
    _ body: [UInt8], contentType: String?, partsMax: Int
  ) throws(BatchFault) -> [BatchPart] {
    guard let contentType, let boundary = boundary(contentType) else {
      throw BatchFault("Content-Type must be multipart/mixed with a boundary.")
    }
    var parts: [BatchPart] = []
    for section in try sections(body, Array("--\(boundary)".utf8), max: partsMax) {
      parts.append(try part(section))
    }
    guard !parts.isEmpty else { throw BatchFault("The batch has no parts.") }
    return parts
  }

  static func boundary(_ contentType: String) -> String? {
    guard contentType.lowercased().hasPrefix("multipart/mixed") else { return nil }
    for parameter in contentType.split(separator: ";").dropFirst() {
      let sides = parameter.split(separator: "=", maxSplits: 1)
      guard sides.count == 2, sides[0].filter({ $0 != " " }).lowercased() == "boundary" else { continue }
      var value = sides[1].drop { $0 == " " }
      while value.last == " " { value = value.dropLast() }
      if value.count >= 2, value.first == "\"", value.last == "\"" { value = value.dropFirst().dropLast() }
      return (1...70).contains(value.utf8.count) ? String(value) : nil
    }
    return nil
  }

  /// What stands between boundary lines.
  private static func sections(
    _ body: [UInt8], _ mark: [UInt8], max: Int
  ) throws(BatchFault) -> [ArraySlice<UInt8>] {
    var sections: [ArraySlice<UInt8>] = []
    var start: Int?
    var line = 0
    while line < body.count {
      let end = body[line...].firstIndex(of: 0x0A) ?? body.count
      let text = trimmedEnd(body[line..<end])
      if text.starts(with: mark), isMark(text.dropFirst(mark.count)) {
        if let start {
          guard sections.count < max else { throw BatchFault("A batch has at most \(max) requests.") }
          sections.append(body[start..<contentEnd(body, start, line)])
        }
        if text.count >= mark.count + 2 { return sections }
        start = min(end + 1, body.count)
      }
      line = end + 1
    }
    throw BatchFault("The batch has no closing boundary.")
  }

  /// A boundary line has nothing behind the boundary, or two dashes.
  private static func isMark(_ rest: ArraySlice<UInt8>) -> Bool {
    rest.isEmpty || Array(rest) == [0x2D, 0x2D]
  }

  /// Without the line end that belongs to the boundary.
  private static func contentEnd(_ body: [UInt8], _ start: Int, _ mark: Int) -> Int {
    var end = mark
    if end > start, body[end - 1] == 0x0A { end -= 1 }
    if end > start, body[end - 1] == 0x0D { end -= 1 }
    return end
  }

  private static func trimmedEnd(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var line = line
    while let last = line.last, last == 0x0D || last == 0x20 || last == 0x09 { line.removeLast() }
    return line
  }

  private static func part(_ section: ArraySlice<UInt8>) throws(BatchFault) -> BatchPart {
    let outer = try head(section)
    let inner = try head(outer.body, hasRequestLine: true)
    let words = inner.line.split(separator: " ")
    guard words.count == 3, words[2].hasPrefix("HTTP/1.") else {
      throw BatchFault("A part of the batch is no HTTP request.")
    }
    var body = inner.body
    // Clients end the request with the line end before the boundary.
    while let last = body.last, last == 0x0A || last == 0x0D { body.removeLast() }
    return BatchPart(
      method: String(words[0]), target: String(words[1]), fields: inner.fields, body: Array(body))
  }

  /// Header lines up to the first empty one, and what follows.
  private static func head(
    _ bytes: ArraySlice<UInt8>, hasRequestLine: Bool = false
  ) throws(BatchFault) -> (line: String, fields: HTTPFields, body: ArraySlice<UInt8>) {
    var fields = HTTPFields()
    var first: String?
    var at = bytes.startIndex
    var count = 0
    while at < bytes.endIndex {
      let end = bytes[at...].firstIndex(of: 0x0A) ?? bytes.endIndex
      let line = trimmedEnd(bytes[at..<end])
      at = min(end + 1, bytes.endIndex)
      if line.isEmpty {
        // Empty lines before the request line are passed over (RFC 9112 section 2.2).
        if hasRequestLine, first == nil { continue }
        return (first ?? "", fields, bytes[at...])
      }
      count += 1
      guard count <= 64 else { throw BatchFault("A part of the batch has too many header fields.") }
      let text = String(decoding: line, as: UTF8.self)
      if hasRequestLine, first == nil {
        first = text
        continue
      }
      guard let colon = text.firstIndex(of: ":") else {
        throw BatchFault("A part of the batch has a malformed header field.")
      }
      let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      fields.append(String(text[..<colon]), String(value))
    }
    return (first ?? "", fields, bytes[bytes.endIndex...])
  }
}
