/// The lexical half of the reader: strings, numbers, literals and blanks of RFC 8259.
///
/// Each function starts at `at`, moves it behind what it read and never looks behind the span: `RawSpan`
/// checks every access also in a release build.
enum JSONScanner {
  @inline(__always)
  static func byte(_ bytes: borrowing RawSpan, _ at: Int) -> UInt8 {
    bytes.unsafeLoad(fromByteOffset: at, as: UInt8.self)
  }

  @inline(__always)
  static func skipBlanks(_ bytes: borrowing RawSpan, _ at: inout Int) {
    while at < bytes.byteCount {
      switch byte(bytes, at) {
      case 0x20, 0x0A, 0x0D, 0x09: at &+= 1
      default: return
      }
    }
  }

  /// Reads a string from behind its opening quote to behind its closing one.
  ///
  /// - Returns: How many UTF-8 bytes its value has. It equals the raw length exactly when there is no escape,
  ///   as every escape is longer than what it stands for.
  /// - Source: RFC 8259 section 7; RFC 3629.
  static func string(
    _ bytes: borrowing RawSpan, _ at: inout Int
  ) throws(JSONFault) -> Int {
    let start = at
    let count = bytes.byteCount
    var saved = 0
    while true {
      while at &+ 8 <= count {
        let word = UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: at, as: UInt64.self))
        let found = marks(word)
        if found == 0 {
          at &+= 8
          continue
        }
        at &+= found.trailingZeroBitCount >> 3
        break
      }
      guard at < count else { throw JSONFault(.unexpectedEnd, at: at) }
      switch byte(bytes, at) {
      case UInt8(ascii: "\""):
        at &+= 1
        return at &- 1 &- start &- saved
      case UInt8(ascii: "\\"):
        saved &+= try escape(bytes, &at)
      case 0x00..<0x20:
        throw JSONFault(.controlCharacter, at: at)
      case 0x80...:
        repeat { try sequence(bytes, &at) } while at < count && byte(bytes, at) >= 0x80
      default:
        at &+= 1
      }
    }
  }

  /// Marks, in the top bit of each byte, a quote, a backslash, a control or a byte of 0x80 and more.
  ///
  /// The lowest mark is always right; one above it may be a borrow.
  @inline(__always)
  private static func marks(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let tops: UInt64 = 0x8080_8080_8080_8080
    let quote = word ^ (ones &* 0x22)
    let slash = word ^ (ones &* 0x5C)
    let found = (quote &- ones) & ~quote | (slash &- ones) & ~slash | (word &- ones &* 0x20) & ~word | word
    return found & tops
  }

  /// Reads one escape from its backslash on; a surrogate pair counts as one.
  ///
  /// - Returns: How many bytes the raw form is longer than the value.
  private static func escape(_ bytes: borrowing RawSpan, _ at: inout Int) throws(JSONFault) -> Int {
    let start = at
    guard at &+ 1 < bytes.byteCount else { throw JSONFault(.unexpectedEnd, at: bytes.byteCount) }
    switch byte(bytes, at &+ 1) {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      at &+= 2
      return 1
    case UInt8(ascii: "u"):
      let unit = try hex4(bytes, at &+ 2)
      at &+= 6
      switch unit {
      case 0..<0x80: return 5
      case 0x80..<0x800: return 4
      case 0xD800..<0xDC00:
        guard at &+ 1 < bytes.byteCount, byte(bytes, at) == UInt8(ascii: "\\"),
          byte(bytes, at &+ 1) == UInt8(ascii: "u")
        else { throw JSONFault(.loneSurrogate, at: start) }
        let low = try hex4(bytes, at &+ 2)
        guard (0xDC00..<0xE000).contains(low) else { throw JSONFault(.loneSurrogate, at: start) }
        at &+= 6
        return 8
      case 0xDC00..<0xE000: throw JSONFault(.loneSurrogate, at: start)
      default: return 3
      }
    default:
      throw JSONFault(.invalidEscape, at: start)
    }
  }

  static func hex4(_ bytes: borrowing RawSpan, _ at: Int) throws(JSONFault) -> UInt32 {
    guard at &+ 4 <= bytes.byteCount else { throw JSONFault(.unexpectedEnd, at: bytes.byteCount) }
    var value: UInt32 = 0
    for offset in 0..<4 {
      let digit: UInt32
      switch byte(bytes, at &+ offset) {
      case let byte where byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"):
        digit = UInt32(byte &- UInt8(ascii: "0"))
      case let byte where byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "f"):
        digit = UInt32(byte &- UInt8(ascii: "a") &+ 10)
      case let byte where byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "F"):
        digit = UInt32(byte &- UInt8(ascii: "A") &+ 10)
      default:
        throw JSONFault(.invalidEscape, at: at &+ offset)
      }
      value = value << 4 | digit
    }
    return value
  }

  /// Reads one multi-byte sequence, shortest form, no surrogates, at most U+10FFFF.
  /// - Source: RFC 3629 section 4 (UTF8-octets).
  @inline(__always)
  private static func sequence(_ bytes: borrowing RawSpan, _ at: inout Int) throws(JSONFault) {
    let first = byte(bytes, at)
    let length: Int
    var low: UInt8 = 0x80
    var high: UInt8 = 0xBF
    switch first {
    case 0xC2...0xDF: length = 2
    case 0xE0: (length, low) = (3, 0xA0)
    case 0xED: (length, high) = (3, 0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, low) = (4, 0x90)
    case 0xF1...0xF3: length = 4
    case 0xF4: (length, high) = (4, 0x8F)
    default: throw JSONFault(.invalidUTF8, at: at)
    }
    guard at &+ length <= bytes.byteCount else { throw JSONFault(.invalidUTF8, at: at) }
    let second = byte(bytes, at &+ 1)
    guard second >= low, second <= high else { throw JSONFault(.invalidUTF8, at: at) }
    var offset = 2
    while offset < length {
      guard byte(bytes, at &+ offset) & 0xC0 == 0x80 else { throw JSONFault(.invalidUTF8, at: at) }
      offset &+= 1
    }
    at &+= length
  }

  /// Reads a number.
  ///
  /// What follows it is the caller's affair.
  /// - Source: RFC 8259 section 6.
  static func number(_ bytes: borrowing RawSpan, _ at: inout Int) throws(JSONFault) {
    let start = at
    if byte(bytes, at) == UInt8(ascii: "-") { at &+= 1 }
    guard at < bytes.byteCount else { throw JSONFault(.unexpectedEnd, at: at) }
    if byte(bytes, at) == UInt8(ascii: "0") {
      at &+= 1
      if at < bytes.byteCount, isDigit(byte(bytes, at)) { throw JSONFault(.invalidNumber, at: start) }
    } else {
      try digits(bytes, &at, of: start)
    }
    if at < bytes.byteCount, byte(bytes, at) == UInt8(ascii: ".") {
      at &+= 1
      try digits(bytes, &at, of: start)
    }
    if at < bytes.byteCount, byte(bytes, at) | 0x20 == UInt8(ascii: "e") {
      at &+= 1
      if at < bytes.byteCount, byte(bytes, at) == UInt8(ascii: "+") || byte(bytes, at) == UInt8(ascii: "-") {
        at &+= 1
      }
      try digits(bytes, &at, of: start)
    }
  }

  @inline(__always)
  private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

  @inline(__always)
  private static func digits(
    _ bytes: borrowing RawSpan, _ at: inout Int, of start: Int
  ) throws(JSONFault) {
    guard at < bytes.byteCount else { throw JSONFault(.unexpectedEnd, at: at) }
    guard isDigit(byte(bytes, at)) else { throw JSONFault(.invalidNumber, at: start) }
    repeat { at &+= 1 } while at < bytes.byteCount && isDigit(byte(bytes, at))
  }

  /// Reads `true`, `false` or `null`, whose first letter has been seen.
  static func literal(_ bytes: borrowing RawSpan, _ at: inout Int) throws(JSONFault) -> JSONKind {
    switch byte(bytes, at) {
    case UInt8(ascii: "t"):
      try word("true", bytes, &at)
      return .true
    case UInt8(ascii: "f"):
      try word("false", bytes, &at)
      return .false
    case UInt8(ascii: "n"):
      try word("null", bytes, &at)
      return .null
    default:
      throw JSONFault(.unexpectedByte, at: at)
    }
  }

  private static func word(
    _ word: StaticString, _ bytes: borrowing RawSpan, _ at: inout Int
  ) throws(JSONFault) {
    for offset in 0..<word.utf8CodeUnitCount {
      guard at < bytes.byteCount else { throw JSONFault(.unexpectedEnd, at: at) }
      guard byte(bytes, at) == word.utf8Start[offset] else { throw JSONFault(.unexpectedByte, at: at) }
      at &+= 1
    }
  }
}
