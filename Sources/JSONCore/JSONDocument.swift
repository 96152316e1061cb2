/// What a JSON value is.
package enum JSONKind: UInt8, Sendable, CaseIterable {
  case object, array, string, number, `true`, `false`, null

  @inlinable
  package var isBoolean: Bool {
    switch self {
    case .true, .false: true
    default: false
    }
  }
}

/// One member of an object: where its name and its value stand.
package struct JSONMember: Sendable {
  package let name: JSONString
  package let kind: JSONKind
  @usableFromInline let start32: Int32
  @usableFromInline var end32: Int32
  @usableFromInline var decoded32: Int32
  @usableFromInline var next32: Int32

  fileprivate init(name: JSONString, kind: JSONKind, start: Int, end: Int, decodedCount: Int, next: Int) {
    self.name = name
    self.kind = kind
    start32 = Int32(truncatingIfNeeded: start)
    end32 = Int32(truncatingIfNeeded: end)
    decoded32 = Int32(truncatingIfNeeded: decodedCount)
    next32 = Int32(truncatingIfNeeded: next)
  }

  /// The whole value, of a string with its quotes.
  @inlinable
  package var value: JSONRange { JSONRange(start: Int(start32), end: Int(end32)) }

  /// The value's content when it is a string.
  @inlinable
  package var string: JSONString? {
    guard case .string = kind else { return nil }
    return JSONString(start: Int(start32) &+ 1, end: Int(end32) &- 1, decodedCount: Int(decoded32))
  }

  /// Bytes that size limits count: of a string its decoded UTF-8, of anything else its text as it came.
  @inlinable
  package var decodedCount: Int { Int(decoded32) }

  /// Index in ``JSONDocument/members`` of the next member of the same object, or behind its last.
  @inlinable
  package var next: Int { Int(next32) }
}

/// Reads one JSON text, validates all of it and keeps where the members of its objects stand.
///
/// Meant to be kept and used again: after the first texts it allocates nothing. It holds places only, so the
/// text must stay as it is while they are used. Members of objects down to ``recordedDepth`` are listed in the
/// order they came; what is deeper or inside an array is validated and listed with its parent's value only.
///
/// Stricter than the grammar in one point: an escaped surrogate without its other half is refused, as it
/// stands for no character (RFC 8259 section 8.2 leaves that open). A byte order mark is refused. The same
/// name twice is not its concern; those who look names up decide.
/// - Source: RFC 8259.
package struct JSONDocument: Sendable {
  /// Objects and arrays inside each other, 1 to 64; one more is refused.
  package let depthMax: Int
  /// Members of objects down to this depth are listed; the text's own object has depth 1.
  package let recordedDepth: Int
  /// All listed members, each object's own behind the member that holds the object.
  package private(set) var members: [JSONMember] = []
  /// What the text is as a whole.
  package private(set) var kind: JSONKind = .null
  /// Where the whole value stands, without blanks around it.
  package private(set) var range = JSONRange(start: 0, end: 0)
  /// The listed member that opened the container at each depth, or -1.
  private var openers: [Int]

  package init(depthMax: Int = 16, recordedDepth: Int = 2) {
    precondition((1...64).contains(depthMax) && (1...64).contains(recordedDepth), "depths are 1 to 64")
    self.depthMax = depthMax
    self.recordedDepth = recordedDepth
    openers = Array(repeating: -1, count: depthMax + 1)
    members.reserveCapacity(32)
  }

  /// The members of the object that `index` holds, to be walked with ``JSONMember/next``.
  @inlinable
  package func children(of index: Int) -> Range<Int> {
    if case .object = members[index].kind { return index + 1..<members[index].next }
    return index..<index
  }

  /// Reads `text`; what was known of the last one is forgotten.
  /// - Throws: Where and why it is not JSON. ``members`` are then of no use.
  /// - Complexity: O(n), one pass, no recursion.
  package mutating func read(_ text: UnsafeRawBufferPointer) throws(JSONFault) {
    members.removeAll(keepingCapacity: true)
    guard text.count <= Int(Int32.max) else { throw JSONFault(.tooLong, at: 0) }
    let bytes = text.bytes
    let count = bytes.byteCount
    var at = 0
    var depth = 0
    // Bit d-1 is set when the container at depth d is an object.
    var objects: UInt64 = 0
    var name = JSONString(start: 0, end: 0, decodedCount: 0)

    nextValue: while true {
      JSONScanner.skipBlanks(bytes, &at)
      guard at < count else { throw JSONFault(.unexpectedEnd, at: at) }
      let start = at
      let kind: JSONKind
      let decodedCount: Int
      switch JSONScanner.byte(bytes, at) {
      case UInt8(ascii: "\""):
        at &+= 1
        decodedCount = try JSONScanner.string(bytes, &at)
        kind = .string
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        let isObject = JSONScanner.byte(bytes, at) == UInt8(ascii: "{")
        kind = isObject ? .object : .array
        guard depth < depthMax else { throw JSONFault(.tooDeep, at: at) }
        at &+= 1
        JSONScanner.skipBlanks(bytes, &at)
        guard at < count else { throw JSONFault(.unexpectedEnd, at: at) }
        if JSONScanner.byte(bytes, at) == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
          at &+= 1
          decodedCount = at &- start
          break
        }
        openers[depth &+ 1] = -1
        if depth == 0 {
          range = JSONRange(start: start, end: start)
          self.kind = kind
        } else if isListed(depth, objects) {
          openers[depth &+ 1] = members.count
          members.append(
            JSONMember(name: name, kind: kind, start: start, end: start, decodedCount: 0, next: 0))
        }
        let bit: UInt64 = 1 << UInt64(truncatingIfNeeded: depth)
        objects = isObject ? objects | bit : objects & ~bit
        depth &+= 1
        if isObject { name = try Self.readName(bytes, &at) }
        continue nextValue
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        try JSONScanner.number(bytes, &at)
        kind = .number
        decodedCount = at &- start
      default:
        kind = try JSONScanner.literal(bytes, &at)
        decodedCount = at &- start
      }
      if depth == 0 {
        range = JSONRange(start: start, end: at)
        self.kind = kind
      } else if isListed(depth, objects) {
        members.append(
          JSONMember(
            name: name, kind: kind, start: start, end: at, decodedCount: decodedCount,
            next: members.count &+ 1))
      }

      // A value is complete: its container goes on or is complete too.
      while depth > 0 {
        JSONScanner.skipBlanks(bytes, &at)
        guard at < count else { throw JSONFault(.unexpectedEnd, at: at) }
        let inObject = objects >> UInt64(truncatingIfNeeded: depth &- 1) & 1 == 1
        switch JSONScanner.byte(bytes, at) {
        case UInt8(ascii: ","):
          at &+= 1
          if inObject {
            JSONScanner.skipBlanks(bytes, &at)
            name = try Self.readName(bytes, &at)
          }
          continue nextValue
        case UInt8(ascii: "}") where inObject, UInt8(ascii: "]") where !inObject:
          at &+= 1
          let opener = openers[depth]
          if opener >= 0 {
            members[opener].close(at: at, next: members.count)
          }
          depth &-= 1
          if depth == 0 { range = JSONRange(start: range.start, end: at) }
        default:
          throw JSONFault(.unexpectedByte, at: at)
        }
      }
      JSONScanner.skipBlanks(bytes, &at)
      guard at == count else { throw JSONFault(.trailingBytes, at: at) }
      return
    }
  }

  /// Members of the container at `depth` are listed: it is not too deep and all around it are objects.
  @inline(__always)
  private func isListed(_ depth: Int, _ objects: UInt64) -> Bool {
    guard depth <= recordedDepth else { return false }
    let all: UInt64 = depth >= 64 ? .max : (1 << UInt64(truncatingIfNeeded: depth)) &- 1
    return objects & all == all
  }

  /// Reads a member's name and its colon; blanks before it are skipped already.
  @inline(__always)
  private static func readName(
    _ bytes: borrowing RawSpan, _ at: inout Int
  ) throws(JSONFault) -> JSONString {
    guard at < bytes.byteCount else { throw JSONFault(.unexpectedEnd, at: at) }
    guard JSONScanner.byte(bytes, at) == UInt8(ascii: "\"") else { throw JSONFault(.unexpectedByte, at: at) }
    at &+= 1
    let start = at
    let decodedCount = try JSONScanner.string(bytes, &at)
    let name = JSONString(start: start, end: at &- 1, decodedCount: decodedCount)
    JSONScanner.skipBlanks(bytes, &at)
    guard at < bytes.byteCount else { throw JSONFault(.unexpectedEnd, at: at) }
    guard JSONScanner.byte(bytes, at) == UInt8(ascii: ":") else { throw JSONFault(.unexpectedByte, at: at) }
    at &+= 1
    return name
  }
}

extension JSONMember {
  fileprivate mutating func close(at end: Int, next: Int) {
    end32 = Int32(truncatingIfNeeded: end)
    decoded32 = end32 &- start32
    next32 = Int32(truncatingIfNeeded: next)
  }
}
