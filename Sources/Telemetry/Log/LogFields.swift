/// One value beside a log sentence.
package enum LogValue: Sendable, Equatable {
  case text(String)
  case number(Int64)
  case decimal(Double)
  case flag(Bool)

  package init(_ text: String) { self = .text(text) }
  package init(_ number: some BinaryInteger) { self = .number(Int64(clamping: number)) }
  package init(_ decimal: Double) { self = .decimal(decimal) }
  package init(_ flag: Bool) { self = .flag(flag) }
  /// Shows the length only.
  package init(_ secret: Redacted) { self = .text(secret.description) }
  /// Milliseconds, with three digits behind the point.
  package init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self = .decimal((Double(seconds) * 1_000 + Double(attoseconds / 1_000_000_000_000) / 1_000))
  }
}

extension LogValue: ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
  package init(stringLiteral value: String) { self = .text(value) }
  package init(integerLiteral value: Int64) { self = .number(value) }
  package init(floatLiteral value: Double) { self = .decimal(value) }
  package init(booleanLiteral value: Bool) { self = .flag(value) }
}

/// The values beside a log sentence, in the order written: `["stream": .init(id), "code": "BAD_ACK"]`.
package struct LogFields: Sendable, ExpressibleByDictionaryLiteral {
  package private(set) var entries: [(name: StaticString, value: LogValue)]

  package init() { entries = [] }
  package init(dictionaryLiteral elements: (StaticString, LogValue)...) {
    entries = elements.map { (name: $0.0, value: $0.1) }
  }

  package mutating func append(_ name: StaticString, _ value: LogValue) {
    entries.append((name: name, value: value))
  }

  package func appending(_ more: LogFields) -> LogFields {
    var both = self
    both.entries.append(contentsOf: more.entries)
    return both
  }
}
