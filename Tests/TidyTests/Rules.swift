import Foundation

/// The house rules as functions from text to findings, so that each can be shown to fail.
enum Rules {
  /// Modules imported by a Swift file, with their line numbers.
  static func imports(_ text: String) -> [(module: String, line: Int)] {
    SwiftText(text).lines.enumerated().compactMap { number, line in
      guard line.utf8.count < 200, line.contains("import "),
        let match = line.wholeMatch(
          of:
            #/\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+).*/#
        )
      else { return nil }
      return (String(match.1), number + 1)
    }
  }

  /// Force unwraps, `try!`, `as!` and implicitly unwrapped types.
  ///
  /// Found by what stands before a `!`: a name, a closing bracket or a quote makes it postfix. `!=` and prefix
  /// negations are not.
  static func forced(_ text: String) -> [Int] {
    SwiftText(text).lines.enumerated().compactMap { number, line in
      guard line.utf8.contains(UInt8(ascii: "!")) else { return nil }
      let scalars = Array(line.unicodeScalars)
      for (index, scalar) in scalars.enumerated() where scalar == "!" && index > 0 {
        if index + 1 < scalars.count && scalars[index + 1] == "=" { continue }
        let before = scalars[index - 1]
        if before.properties.isAlphabetic || (before.value >= 48 && before.value <= 57)
          || [")", "]", "}", "_", "\"", "`", "?", ">", "!"].contains(before)
        {
          return number + 1
        }
      }
      return nil
    }
  }

  /// Escapes from the compiler's checks that no comment within the ten lines above, or on the line, explains.
  static func unexplainedEscapes(_ text: String) -> (count: Int, faults: [Int]) {
    let raw = text.split(separator: "\n", omittingEmptySubsequences: false)
    var count = 0
    var faults: [Int] = []
    for (number, line) in SwiftText(text).lines.enumerated()
    where line.contains("@unchecked Sendable") || line.contains("nonisolated(unsafe)") {
      count += 1
      // The comment is above the declaration, above its attributes, or opens the body of a type.
      let from = max(0, number - 1)
      let isAbove = raw[from..<number].contains { $0.contains("//") }
      let isOnLine = raw[number].contains("//")
      let isBelow =
        line.contains("@unchecked") && number + 1 < raw.count
        && raw[number + 1].trimmingCharacters(in: .whitespaces).hasPrefix("//")
      if !(isAbove || isOnLine || isBelow) { faults.append(number + 1) }
    }
    return (count, faults)
  }

  /// Lines with a note that something is left to do.
  static func notes(_ text: String) -> [Int] {
    lines(of: text, holding: ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) { line in
      line.contains(#/\b(?:TO|FIX)(?:DO|ME)\b|\bXXX\b|\bHACK\b/#)
    }
  }

  /// The numbers of the lines for which `isFault` holds; asked only where one of `words` stands, since it is slow.
  private static func lines(
    of text: String, holding words: [String], where isFault: (Substring) -> Bool
  ) -> [Int] {
    guard words.contains(where: { text.contains($0) }) else { return [] }
    return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap {
      number, line in
      words.contains { line.contains($0) } && isFault(line) ? number + 1 : nil
    }
  }

  /// Paths of somebody's machine, and of folders that are not in the repository.
  static func machinePaths(_ text: String) -> [Int] {
    lines(of: text, holding: ["/work", "/home", "/root", "/Users"]) { line in
      line.contains(#/(?:^|[\s`"'(=])/(?:work|home|root|Users)(?:/|\b)/#)
    }
  }

  /// `make x` commands that a document names: in backticks, or at the beginning of a line of a code block.
  static func makeTargets(named text: String) -> Set<String> {
    var found: Set<String> = []
    var isCode = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") {
        isCode.toggle()
      } else if isCode {
        if let match = line.firstMatch(of: #/^(?:\$ )?make ([a-z][a-z-]*)/#) { found.insert(String(match.1)) }
      } else {
        for match in line.matches(of: #/`make ([a-z][a-z-]*)/#) { found.insert(String(match.1)) }
      }
    }
    return found
  }

  /// The targets of a Makefile.
  static func makeTargets(in makefile: String) -> Set<String> {
    Set(makefile.matches(of: #/(?m)^([a-z][a-z-]*):(?!=)/#).map { String($0.1) })
  }
}
