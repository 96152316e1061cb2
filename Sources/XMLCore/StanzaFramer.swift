/// One thing found in a stream.
///
/// Slices point into the chunk, or into the framer until its next call.
package enum FramedItem {
  /// The stream's start tag, from `<` to `>`; not yet read. An XML declaration before it was checked.
  case header(UnsafeRawBufferPointer, selfClosed: Bool)
  /// A whole first-level element; not yet read.
  case stanza(UnsafeRawBufferPointer)
  /// So many bytes of white space between stanzas: a sign of life. How a run is split up depends on reads.
  case whitespace(Int)
  /// The stream's end tag. Nothing may follow but white space.
  case end
}

/// Cuts a stream of bytes into header, stanzas and white space (RFC 6120 §4, restricted XML of §11.1).
///
/// Bytes come in chunks cut anywhere. A stanza that lies whole in its chunk is handed out in place, another
/// from a buffer that exists only while something is incomplete. Never holds more than the byte limit.
///
/// ```
/// var offset = 0
/// while let item = try framer.next(chunk, &offset) { … }   // stop at any item; feed the rest later
/// ```
package struct StanzaFramer: ~Copyable {
  private enum Place { case start, prolog, open, closed }

  /// May be changed between items, as at login.
  package var limits: XMLLimits

  private var place = Place.start
  private var scanner: ElementScanner?
  private var carry = Carry()
  private var carryIsLent = false
  private var fault: XMLFault?
  /// Qualified name of the stream element, nil for the usual one.
  private var rootName: [UInt8]?

  /// First-level elements found so far.
  package private(set) var stanzaCount: UInt32 = 0

  /// - Parameter isOpen: Begins within a stream whose start tag was the usual one, and is not in the bytes.
  package init(limits: XMLLimits, isOpen: Bool = false) {
    self.limits = limits
    if isOpen { place = .open }
  }

  /// Whether bytes of an unfinished item are held.
  package var isMidItem: Bool { scanner != nil }

  /// Bytes of memory held for an unfinished item.
  package var carriedBytes: Int { carry.count }

  /// Finds the next item at or after `offset` and moves `offset` past what was taken.
  ///
  /// - Returns: nil when the chunk is used up.
  /// - Throws: The same fault again on every later call, until ``reset()``.
  /// - Complexity: O(bytes taken); no byte is looked at twice.
  package mutating func next(
    _ chunk: UnsafeRawBufferPointer, _ offset: inout Int
  ) throws(XMLFault) -> FramedItem? {
    if carryIsLent {
      carry.release()
      carryIsLent = false
    }
    if let fault { throw fault }
    do throws(XMLFault) {
      return try advance(chunk, &offset)
    } catch {
      fault = error
      carry.release()
      throw error
    }
  }

  /// Forgets everything: the next bytes begin a new stream, as after SASL (RFC 6120 §4.3.3).
  package mutating func reset() {
    place = .start
    scanner = nil
    carry.release()
    carryIsLent = false
    fault = nil
    rootName = nil
  }

  private mutating func advance(
    _ chunk: UnsafeRawBufferPointer, _ offset: inout Int
  ) throws(XMLFault) -> FramedItem? {
    while offset < chunk.count {
      if scanner == nil {
        let spaces = skipSpaces(chunk, &offset)
        if spaces > 0 {
          if place == .open { return .whitespace(spaces) }
          if place == .start { place = .prolog }
          continue
        }
        try begin(chunk[offset])
      }
      if let item = try scan(chunk, &offset) { return item }
    }
    return nil
  }

  private func skipSpaces(_ chunk: UnsafeRawBufferPointer, _ offset: inout Int) -> Int {
    let start = offset
    while offset < chunk.count, isXMLSpace(chunk[offset]) { offset += 1 }
    return offset - start
  }

  private mutating func begin(_ byte: UInt8) throws(XMLFault) {
    guard byte == 0x3C, place != .closed else {
      // The first byte of a UTF-16 byte order mark, or of UTF-32 or UTF-16 without one.
      if place == .start, byte == 0xFE || byte == 0xFF || byte == 0 { throw .unsupportedEncoding }
      throw .notWellFormed
    }
    scanner =
      place == .open
      ? ElementScanner()
      : ElementScanner(stopsAtOpenTag: true, allowsDeclaration: place == .start)
  }

  private mutating func scan(
    _ chunk: UnsafeRawBufferPointer, _ offset: inout Int
  ) throws(XMLFault) -> FramedItem? {
    let start = offset
    // Not one byte past the limit is looked at, so that a cut does not change which fault is found.
    let room = limits.bytesMax - carry.count
    guard room > 0 else { throw .limit(.bytes) }
    let window = min(chunk.count, start + room)
    let outcome =
      try scanner?.scan(chunk, from: start, to: window, limits: limits) ?? .incomplete
    switch outcome {
    case .incomplete:
      guard window == chunk.count else { throw .limit(.bytes) }
      carry.append(UnsafeRawBufferPointer(rebasing: chunk[start..<window]))
      offset = window
      return nil
    case .openTag(let end), .element(let end), .endTag(let end), .declaration(let end):
      offset = end
      scanner = nil
      return try finish(outcome, slice(chunk, start, end))
    }
  }

  private mutating func slice(
    _ chunk: UnsafeRawBufferPointer, _ start: Int, _ end: Int
  ) -> UnsafeRawBufferPointer {
    let part = UnsafeRawBufferPointer(rebasing: chunk[start..<end])
    if carry.count == 0 { return part }
    carry.append(part)
    carryIsLent = true
    return carry.bytes
  }

  private mutating func finish(
    _ outcome: ElementScanner.Outcome, _ item: UnsafeRawBufferPointer
  ) throws(XMLFault) -> FramedItem? {
    switch outcome {
    case .declaration:
      try XMLDeclaration.check(item)
      place = .prolog
      if carryIsLent {
        carry.release()
        carryIsLent = false
      }
      return nil
    case .endTag:
      guard place == .open, isRootEnd(item) else { throw .notWellFormed }
      place = .closed
      return .end
    case .openTag:
      place = .open
      rememberRoot(item)
      return .header(item, selfClosed: false)
    case .element:
      if place == .open {
        stanzaCount &+= 1
        return .stanza(item)
      }
      place = .closed
      return .header(item, selfClosed: true)
    case .incomplete:
      return nil
    }
  }

  private static let usualRoot: StaticString = "stream:stream"

  private mutating func rememberRoot(_ header: UnsafeRawBufferPointer) {
    let name = header.dropFirst().prefix { !isXMLSpace($0) && $0 != 0x3E && $0 != 0x2F }
    rootName = Self.usualRoot.withUTF8Buffer { $0.elementsEqual(name) } ? nil : Array(name)
  }

  private func isRootEnd(_ tag: UnsafeRawBufferPointer) -> Bool {
    var name = tag.dropFirst(2).dropLast()
    while let last = name.last, isXMLSpace(last) { name = name.dropLast() }
    if let rootName { return rootName.elementsEqual(name) }
    return Self.usualRoot.withUTF8Buffer { $0.elementsEqual(name) }
  }
}
