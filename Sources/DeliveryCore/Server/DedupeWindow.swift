import Bytes
package import PushModel
package import Seams

/// Remembers which messages of one sender were taken, for a time and a number of ids.
///
/// The ids are spread over 64 parts, each with a current and a previous generation. A part that fills up, or
/// grows old, turns its current generation into the previous one, so that between one and two times the
/// horizon is remembered, no single step costs more than a part, and memory is bounded by
/// `2 × idsMax × about 24 bytes`.
package struct DedupeWindow: Sendable {
  fileprivate struct Part: Sendable {
    var current: [Hash128: UInt8] = [:]
    var previous: [Hash128: UInt8] = [:]
    var currentSince: WallTime
  }

  private static let partCount = 64
  private let idsPerPart: Int
  private let horizonMs: Int64
  private var parts: [Part] = []

  /// - Parameters:
  ///   - idsMax: How many ids are surely remembered; at least 64.
  ///   - horizon: How long they are surely remembered, unless `idsMax` newer ones came.
  package init(idsMax: Int, horizon: Duration) {
    idsPerPart = max(1, idsMax / Self.partCount)
    horizonMs = horizon.ns / 1_000_000
  }

  /// Records an id together with the shard that handles it.
  ///
  /// - Returns: Nil when the id is new; the shard recorded first when it is known.
  package mutating func insert(_ key: MessageKey, shard: UInt8, now: WallTime) -> UInt8? {
    if parts.isEmpty {
      parts = Array(repeating: Part(currentSince: now), count: Self.partCount)
    }
    let index = Int(truncatingIfNeeded: key.hash.high >> 58)
    return parts[index].insert(
      key.hash, shard: shard, now: now, idsMax: idsPerPart, horizonMs: horizonMs)
  }

  /// Forgets an id, because its message was refused after all and may be sent again.
  package mutating func remove(_ key: MessageKey) {
    guard !parts.isEmpty else { return }
    let index = Int(truncatingIfNeeded: key.hash.high >> 58)
    parts[index].current[key.hash] = nil
    parts[index].previous[key.hash] = nil
  }

  /// How many ids are remembered now.
  package var count: Int { parts.reduce(0) { $0 + $1.current.count + $1.previous.count } }
}

extension DedupeWindow.Part {
  fileprivate mutating func insert(
    _ hash: Hash128, shard: UInt8, now: WallTime, idsMax: Int, horizonMs: Int64
  ) -> UInt8? {
    let age = now.ms &- currentSince.ms
    if current.count >= idsMax || age > horizonMs {
      previous = age > 2 &* horizonMs ? [:] : current
      current = [:]
      currentSince = now
    }
    if let known = current[hash] ?? previous[hash] { return known }
    current[hash] = shard
    return nil
  }
}
