import CLinux
import Foundation
import Glibc
import JSONCore
import Synchronization

/// Where a command writes: results on stdout, everything for people beside them on stderr.
final class Console: Sendable {
  /// Results are for machines.
  let isJSON: Bool
  /// stderr is a terminal, so progress may be drawn.
  let isTerminal: Bool
  private let lock = Mutex(())

  init(isJSON: Bool) {
    self.isJSON = isJSON
    isTerminal = isatty(2) == 1
  }

  /// One line of result.
  ///
  /// Written at once and whole.
  func result(_ text: String) { write(text + "\n", to: 1) }

  func result(_ value: JSONValue) { result(value.text) }

  /// A line for people; goes to stderr.
  func say(_ text: String) { write((isTerminal ? "\r\u{1B}[K" : "") + text + "\n", to: 2) }

  /// Draws over the current line of the terminal; nothing elsewhere.
  func progress(_ text: String) {
    guard isTerminal else { return }
    write("\r\u{1B}[K" + text, to: 2)
  }

  private func write(_ text: String, to descriptor: Int32) {
    lock.withLock { _ in
      var bytes = Array(text.utf8)[...]
      while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else {
          if errno == EINTR { continue }
          return
        }
        bytes = bytes.dropFirst(count)
      }
    }
  }
}

/// Lays rows out in columns.
enum Table {
  /// - Parameter rows: The first is the head. Columns that hold only numbers are set right.
  static func text(_ rows: [[String]]) -> String {
    guard let head = rows.first else { return "" }
    let widths = head.indices.map { column in rows.map { width($0[column]) }.max() ?? 0 }
    let isNumber = head.indices.map { column in
      rows.dropFirst().allSatisfy { $0[column].allSatisfy { $0.isNumber || " .,%-".contains($0) } }
    }
    func line(_ row: [String]) -> String {
      row.indices.map { column in
        let pad = String(repeating: " ", count: widths[column] - width(row[column]))
        return isNumber[column] ? pad + row[column] : row[column] + pad
      }.joined(separator: "  ").trimmedRight
    }
    let rule = widths.map { String(repeating: "─", count: $0) }.joined(separator: "  ")
    return ([line(head), rule] + rows.dropFirst().map(line)).joined(separator: "\n")
  }

  /// Columns a text takes on a terminal; East Asian wide characters and emoji take two.
  static func width(_ text: String) -> Int {
    text.reduce(0) { sum, character in
      guard let scalar = character.unicodeScalars.first else { return sum }
      switch scalar.value {
      case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE4F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF:
        return sum + 2
      default: return sum + 1
      }
    }
  }
}

extension String {
  var trimmedRight: String {
    var text = self[...]
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
