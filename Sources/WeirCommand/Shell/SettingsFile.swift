import Foundation

/// Values of `weir.json`: JSON5, so comments and trailing commas are allowed.
///
/// Names are flag names, with hyphens or underscores.
struct SettingsFile: Sendable {
  private(set) var values: [String: String] = [:]

  init() {}

  /// Reads a file; a missing one counts as empty unless it was asked for by name.
  init(path: String, isRequired: Bool) throws(UsageFault) {
    guard let data = FileManager.default.contents(atPath: path) else {
      if isRequired { throw UsageFault(message: "The settings file \(path) cannot be read.") }
      self.init()
      return
    }
    try self.init(data: data, name: path)
  }

  init(data: Data, name: String) throws(UsageFault) {
    let decoder = JSONDecoder()
    decoder.allowsJSON5 = true
    do {
      let read = try decoder.decode([String: Scalar].self, from: data)
      values = Dictionary(
        read.map { ($0.key.replacing("_", with: "-"), $0.value.text) }, uniquingKeysWith: { _, last in last })
    } catch {
      throw UsageFault(
        message: "\(name) must hold one object of flag names and plain values (JSON5): \(Self.reason(error))")
    }
  }

  private static func reason(_ error: any Error) -> String {
    guard let error = error as? DecodingError else { return "\(error)" }
    switch error {
    case .dataCorrupted(let context): return context.debugDescription
    case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context):
      return "\(context.codingPath.map(\.stringValue).joined(separator: ".")): \(context.debugDescription)"
    @unknown default: return "\(error)"
    }
  }

  private struct Scalar: Decodable {
    let text: String
    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let flag = try? container.decode(Bool.self) {
        text = flag ? "true" : "false"
      } else if let number = try? container.decode(Int64.self) {
        text = String(number)
      } else {
        text = try container.decode(String.self)
      }
    }
  }
}
