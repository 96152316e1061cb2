import PushModel

/// One flag of a command, as help shows it and the parser takes it.
struct Flag: Sendable {
  let name: String
  /// What stands behind the flag in help; nil for a switch.
  let value: String?
  let help: String

  init(_ name: String, _ value: String? = nil, _ help: String) {
    self.name = name
    self.value = value
    self.help = help
  }
}

/// Wrong usage: a sentence for the person who typed it.
///
/// Exit code 2.
struct UsageFault: Error { let message: String }

/// A command's arguments, checked against its flags.
struct Arguments: Sendable {
  private(set) var positional: [String] = []
  private var values: [String: [String]] = [:]
  private var switches: Set<String> = []
  let environment: [String: String]
  private let file: SettingsFile

  /// Reads `--flag value`, `--flag=value` and switches; `--` ends the flags, `-` is positional.
  init(
    _ words: [String], flags: [Flag], positionalMax: Int, environment: [String: String],
    file: SettingsFile = SettingsFile()
  ) throws(UsageFault) {
    self.environment = environment
    self.file = file
    var rest = words[...]
    var flagsEnded = false
    while let word = rest.popFirst() {
      guard !flagsEnded, word.hasPrefix("--"), RegistrationToken(word) == nil else {
        if !flagsEnded, word.hasPrefix("-"), word.count > 1, Int(word) == nil,
          RegistrationToken(word) == nil
        {
          throw UsageFault(message: "Unknown flag \(word): flags have two dashes.")
        }
        positional.append(word)
        continue
      }
      if word == "--" {
        flagsEnded = true
        continue
      }
      let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0])
      guard let flag = flags.first(where: { $0.name == name }) else {
        let near = flags.map(\.name).filter { Self.distance($0, name) <= 2 }.first
        throw UsageFault(
          message: "Unknown flag --\(name)." + (near.map { " Did you mean --\($0)?" } ?? ""))
      }
      if flag.value == nil {
        guard parts.count == 1 else { throw UsageFault(message: "--\(name) takes no value.") }
        switches.insert(name)
      } else if parts.count == 2 {
        values[name, default: []].append(String(parts[1]))
      } else {
        guard let value = rest.popFirst() else { throw UsageFault(message: "--\(name) needs a value.") }
        values[name, default: []].append(value)
      }
    }
    guard positional.count <= positionalMax else {
      throw UsageFault(message: "Unexpected argument \"\(positional[positionalMax])\".")
    }
  }

  func has(_ name: String) -> Bool {
    if switches.contains(name) { return true }
    switch setting(name)?.lowercased() {
    case "1", "true", "yes", "on": return true
    default: return false
    }
  }

  /// Flag, else environment `WEIR_NAME`, else settings file.
  func text(_ name: String) -> String? { values[name]?.last ?? setting(name) }

  func all(_ name: String) -> [String] { values[name] ?? [] }

  private func setting(_ name: String) -> String? {
    let variable = "WEIR_" + name.uppercased().replacing("-", with: "_")
    return environment[variable] ?? file.values[name]
  }

  func text(_ name: String, default fallback: String) -> String { text(name) ?? fallback }

  func number(_ name: String, default fallback: Int, in range: ClosedRange<Int>) throws(UsageFault) -> Int {
    guard let text = text(name) else { return fallback }
    guard let value = Int(text), range.contains(value) else {
      throw UsageFault(
        message:
          "--\(name) must be a number from \(range.lowerBound) to \(range.upperBound), not \"\(text)\".")
    }
    return value
  }

  func positional(_ index: Int, _ what: String) throws(UsageFault) -> String {
    guard positional.indices.contains(index) else { throw UsageFault(message: "\(what) is missing.") }
    return positional[index]
  }

  /// Levenshtein distance, for suggestions.
  static func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left.utf8), Array(right.utf8))
    var row = Array(0...right.count)
    for (i, byte) in left.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, other) in right.enumerated() {
        let above = row[j + 1]
        row[j + 1] = min(above + 1, row[j] + 1, diagonal + (byte == other ? 0 : 1))
        diagonal = above
      }
    }
    return row[right.count]
  }
}
