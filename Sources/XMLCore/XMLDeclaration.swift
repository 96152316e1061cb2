/// The XML declaration that may come before a stream header: XML 1.0 §2.8, RFC 6120 §11.5 and §11.6.
enum XMLDeclaration {
  /// Checks a whole `<?xml … ?>`.
  ///
  /// - Throws: `unsupportedEncoding` when it names another encoding than UTF-8.
  static func check(_ declaration: UnsafeRawBufferPointer) throws(XMLFault) {
    // `<?xml` and `?>` were seen by the scanner.
    var rest = declaration.dropFirst(5).dropLast(2)
    guard let version = try attribute("version", &rest), version.first == 0x31,
      version.dropFirst().first == 0x2E,
      version.count > 2, version.dropFirst(2).allSatisfy({ (0x30...0x39).contains($0) })
    else { throw .notWellFormed }
    if let encoding = try attribute("encoding", &rest) {
      let lower = encoding.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
      guard lower.elementsEqual("utf-8".utf8) else { throw .unsupportedEncoding }
    }
    if let standalone = try attribute("standalone", &rest) {
      guard standalone.elementsEqual("yes".utf8) || standalone.elementsEqual("no".utf8) else {
        throw .notWellFormed
      }
    }
    skipSpaces(&rest)
    guard rest.isEmpty else { throw .notWellFormed }
  }

  private typealias Bytes = Slice<UnsafeRawBufferPointer>

  /// Takes ` name = "value"` off the front, if that name comes next.
  private static func attribute(_ name: String, _ rest: inout Bytes) throws(XMLFault) -> Bytes? {
    var ahead = rest
    guard skipSpaces(&ahead) > 0, ahead.starts(with: name.utf8) else { return nil }
    ahead = ahead.dropFirst(name.utf8.count)
    skipSpaces(&ahead)
    guard ahead.popFirst() == 0x3D else { throw .notWellFormed }
    skipSpaces(&ahead)
    guard let quote = ahead.popFirst(), quote == 0x22 || quote == 0x27,
      let end = ahead.firstIndex(of: quote)
    else { throw .notWellFormed }
    let value = ahead[..<end]
    rest = ahead[end...].dropFirst()
    return value
  }

  @discardableResult
  private static func skipSpaces(_ rest: inout Bytes) -> Int {
    let before = rest.count
    rest = rest.drop(while: isXMLSpace)
    return before - rest.count
  }
}
