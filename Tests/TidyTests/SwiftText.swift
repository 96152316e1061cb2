/// A Swift file with comments and the text of string literals blanked out, so that a search finds code only.
///
/// Not a compiler: it knows line and nested block comments, strings of one and of several lines, raw strings, and
/// interpolations, which stay because they are code.
struct SwiftText {
  /// Line by line.
  let lines: [String]

  init(_ text: String) {
    var scanner = Scanner(Array(text.utf8))
    scanner.code(until: nil)
    lines = String(decoding: scanner.output, as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false
    ).map(String.init)
  }

  private struct Scanner {
    let input: [UInt8]
    var index = 0
    var output: [UInt8] = []

    init(_ input: [UInt8]) {
      self.input = input
      output.reserveCapacity(input.count)
    }

    func peek(_ offset: Int = 0) -> UInt8? {
      index + offset < input.count ? input[index + offset] : nil
    }

    func sees(_ text: [UInt8]) -> Bool {
      guard index + text.count <= input.count else { return false }
      for offset in text.indices where input[index + offset] != text[offset] { return false }
      return true
    }

    mutating func keep() {
      output.append(input[index])
      index += 1
    }

    mutating func blank(_ count: Int = 1) {
      for _ in 0..<count where index < input.count {
        output.append(input[index] == newline ? newline : UInt8(ascii: " "))
        index += 1
      }
    }

    /// Keeps code, up to the parenthesis that closes an interpolation, if one is open.
    mutating func code(until closing: UInt8?) {
      var depth = 0
      while let byte = peek() {
        if let closing, byte == closing, depth == 0 { return }
        switch byte {
        case slash where peek(1) == slash:
          while let next = peek(), next != newline { blank() }
        case slash where peek(1) == star:
          blockComment()
        case quote:
          string()
        case hash where startsRawString():
          string()
        default:
          if byte == UInt8(ascii: "(") { depth += 1 }
          if byte == UInt8(ascii: ")") { depth -= 1 }
          keep()
        }
      }
    }

    func startsRawString() -> Bool {
      var offset = 0
      while peek(offset) == hash { offset += 1 }
      return peek(offset) == quote
    }

    mutating func blockComment() {
      var depth = 0
      repeat {
        if peek() == slash && peek(1) == star {
          depth += 1
          blank(2)
        } else if peek() == star && peek(1) == slash {
          depth -= 1
          blank(2)
        } else {
          blank()
        }
      } while depth > 0 && index < input.count
    }

    mutating func string() {
      var hashes: [UInt8] = []
      while peek() == hash {
        hashes.append(hash)
        keep()
      }
      let isLong = peek(1) == quote && peek(2) == quote
      let quotes = [UInt8](repeating: quote, count: isLong ? 3 : 1)
      for _ in quotes { keep() }
      let escape = [UInt8(ascii: "\\")] + hashes
      while let byte = peek(), !sees(quotes + hashes) {
        if !isLong && byte == newline { return }
        if sees(escape + [UInt8(ascii: "(")]) {
          blank(escape.count)
          keep()
          code(until: UInt8(ascii: ")"))
          if index < input.count { keep() }
        } else if sees(escape) {
          blank(escape.count + 1)
        } else {
          blank()
        }
      }
      for _ in quotes + hashes where index < input.count { keep() }
    }
  }
}

private let newline = UInt8(ascii: "\n")
private let quote = UInt8(ascii: "\"")
private let slash = UInt8(ascii: "/")
private let star = UInt8(ascii: "*")
private let hash = UInt8(ascii: "#")
