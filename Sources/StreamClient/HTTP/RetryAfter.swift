import CCurl

/// What a server says about when to come again.
///
/// - Source: RFC 9110 §10.2.3.
enum RetryAfter {
  /// The wait that a field asks for: seconds, or a date compared with the answer's own `Date`.
  ///
  /// - Parameters:
  ///   - fields: Values of all `Retry-After` lines; more than one is as none, unless they are equal.
  ///   - date: The answer's `Date`.
  ///   - now: Seconds since 1970, where the answer has no date.
  /// - Returns: Nil when it is absent or cannot be read; zero for now and the past.
  static func wait(_ fields: [String], date: String?, now: Int64) -> Duration? {
    guard let text = fields.first, fields.allSatisfy({ $0 == text }), !text.isEmpty else { return nil }
    if text.utf8.allSatisfy({ (48...57).contains($0) }) {
      // So large a number is for ever.
      return .seconds(Int64(text) ?? 1_000_000_000)
    }
    guard let due = seconds(text) else { return nil }
    return .seconds(max(0, due - (date.flatMap { seconds($0) } ?? now)))
  }

  /// An HTTP-date in any of its three forms; nil for other texts, though curl would take some of them.
  private static func seconds(_ text: String) -> Int64? {
    guard let first = text.utf8.first, (65...90).contains(first), text.contains(":") else { return nil }
    let value = curl_getdate(text, nil)
    return value < 0 ? nil : Int64(value)
  }
}
