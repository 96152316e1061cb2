package import Seams

/// Counts for many keys, of which the quiet ones are forgotten.
///
/// Two generations: a key that is used moves to the newer one; after ``quietAfter``, or when the newer one is full, the
/// older is dropped whole. So a key is surely remembered for `quietAfter` after its last use unless `entriesMax` others
/// came since, no step walks the table, and at most `2 × entriesMax` entries are held.
package struct RateTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private var current: [Key: Value] = [:]
  private var previous: [Key: Value] = [:]
  private var since: Moment
  private let entriesMax: Int
  private let quietAfter: Duration

  package init(entriesMax: Int, quietAfter: Duration, now: Moment) {
    self.entriesMax = max(1, entriesMax)
    self.quietAfter = quietAfter
    since = now
  }

  /// Calls `body` with the key's value, a new one when it has none.
  @discardableResult
  package mutating func update<Result>(
    _ key: Key, now: Moment, new: @autoclosure () -> Value, _ body: (inout Value) -> Result
  ) -> Result {
    if now >= since + quietAfter { turn(now) }
    var value: Value
    if let known = current.removeValue(forKey: key) {
      value = known
    } else {
      if current.count >= entriesMax { turn(now) }
      value = previous.removeValue(forKey: key) ?? new()
    }
    let result = body(&value)
    current[key] = value
    return result
  }

  private mutating func turn(_ now: Moment) {
    // Nobody came for two lengths: the newer one is old too.
    previous = now >= since + quietAfter + quietAfter ? [:] : current
    current = [:]
    since = now
  }

  /// Keys remembered now.
  package var count: Int { current.count + previous.count }
}
