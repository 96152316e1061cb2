import Foundation

/// A value of a JSON5 text.
enum ScenarioValue: Decodable, Sendable {
  case null
  case flag(Bool)
  case number(Double)
  case text(String)
  case list([ScenarioValue])
  case object([String: ScenarioValue])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([ScenarioValue].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: ScenarioValue].self))
    }
  }

  /// - Parameter name: Of the file, for the message.
  init(json5 data: Data, name: String) throws(UsageFault) {
    let decoder = JSONDecoder()
    decoder.allowsJSON5 = true
    do {
      self = try decoder.decode(ScenarioValue.self, from: data)
    } catch let DecodingError.dataCorrupted(context) {
      let cause = (context.underlyingError as NSError?)?.userInfo["NSDebugDescription"] as? String
      throw UsageFault(message: "\(name) is no JSON5: \(cause ?? context.debugDescription)")
    } catch {
      throw UsageFault(message: "\(name) is no JSON5: \(error)")
    }
  }

  var kind: String {
    switch self {
    case .null: "null"
    case .flag(let flag): "\(flag)"
    case .number(let number): Self.text(of: number)
    case .text(let text): "\"\(text.prefix(40))\""
    case .list: "a list"
    case .object: "an object"
    }
  }

  static func text(of number: Double) -> String {
    number.rounded() == number && abs(number) < 1e15 ? String(Int(number)) : String(number)
  }
}

/// The members of an object, each read once: what is left over at the end has no meaning.
struct ScenarioFields {
  /// Where the object stands: `devices.`; empty for the whole.
  private let path: String
  private var members: [String: ScenarioValue]
  private var known: [String] = []

  init(_ value: ScenarioValue, at path: String) throws(UsageFault) {
    guard case .object(let members) = value else {
      throw UsageFault(message: "\(path.isEmpty ? "A scenario" : path) must be an object, not \(value.kind).")
    }
    self.path = path
    self.members = members
  }

  func place(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

  var names: Set<String> { Set(members.keys) }

  mutating func take(_ name: String) -> ScenarioValue? {
    known.append(name)
    let value = members.removeValue(forKey: name)
    if case .null? = value { return nil }
    return value
  }

  mutating func number(_ name: String, _ fallback: Double, _ range: ClosedRange<Double>) throws(UsageFault)
    -> Double
  {
    guard let value = take(name) else { return fallback }
    guard case .number(let number) = value, range.contains(number) else {
      throw fault(
        name,
        "a number from \(ScenarioValue.text(of: range.lowerBound)) to \(ScenarioValue.text(of: range.upperBound))",
        value)
    }
    return number
  }

  mutating func integer(_ name: String, _ fallback: Int, _ range: ClosedRange<Int>) throws(UsageFault) -> Int
  {
    guard let value = take(name) else { return fallback }
    guard case .number(let number) = value, let whole = Int(exactly: number), range.contains(whole) else {
      throw fault(name, "a whole number from \(range.lowerBound) to \(range.upperBound)", value)
    }
    return whole
  }

  mutating func text(_ name: String, _ fallback: String) throws(UsageFault) -> String {
    guard let value = take(name) else { return fallback }
    guard case .text(let text) = value else { throw fault(name, "a text", value) }
    return text
  }

  /// Seconds as a number, or a text with a unit: `"500ms"`, `"2m"`.
  mutating func duration(_ name: String, _ fallback: Duration, most: Duration) throws(UsageFault) -> Duration
  {
    guard let value = take(name) else { return fallback }
    let duration: Duration? =
      switch value {
      case .number(let number): .seconds(number)
      case .text(let text): Self.duration(text)
      default: nil
      }
    guard let duration, duration >= .zero, duration <= most else {
      throw fault(name, "seconds, or a text as \"500ms\", \"30s\" or \"2m\", up to \(most)", value)
    }
    return duration
  }

  static func duration(_ text: String) -> Duration? {
    let units: [(String, Double)] = [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3_600), ("", 1)]
    for (unit, seconds) in units where text.hasSuffix(unit) {
      if let number = Double(text.dropLast(unit.count)), number.isFinite { return .seconds(number * seconds) }
    }
    return nil
  }

  mutating func list(_ name: String) throws(UsageFault) -> [ScenarioValue] {
    guard let value = take(name) else { return [] }
    guard case .list(let list) = value else { throw fault(name, "a list", value) }
    return list
  }

  /// The members of an object inside; empty when it is left out.
  mutating func object(_ name: String) throws(UsageFault) -> ScenarioFields {
    try ScenarioFields(take(name) ?? .object([:]), at: place(name))
  }

  func fault(_ name: String, _ wanted: String, _ value: ScenarioValue) -> UsageFault {
    UsageFault(message: "\(place(name)) must be \(wanted), not \(value.kind).")
  }

  /// Nothing may be left.
  func end() throws(UsageFault) {
    guard let name = members.keys.min() else { return }
    let near = known.filter { Arguments.distance($0, name) <= 2 }.first
    throw UsageFault(
      message: "\(place(name)) has no meaning."
        + (near.map { " Did you mean \(place($0))?" } ?? " Known here: \(known.joined(separator: ", ")).")
    )
  }
}
