import Seams
import Stores
import Telemetry

/// Keeps the numbers of messages rising over restarts, also when the wall clock was stepped back in between: a number
/// that an earlier process gave must not come again, and a newer message must have the higher one, since the higher one
/// stays when two have one collapse key.
///
/// The store remembers a time that no number given so far passes; it is moved on before the clock comes near it.
enum NumberFloor {
  private static let setting = "number-floor"
  /// How far ahead the time in the store is, and how near the clock may come to it.
  private static let ahead: Duration = .seconds(60)
  private static let near: Duration = .seconds(30)

  /// Reserves the time ahead.
  ///
  /// - Returns: How far the time in numbers must be ahead of the clock, the same for all loops, so that of two messages the
  ///   later one has the higher number whatever loop it came on.
  static func take(from store: any Store, now: WallTime) async throws(StoreFault) -> Duration {
    var floor = WallTime(ms: 0)
    if let kept = try await store.setting(setting), kept.count == 8 {
      floor = WallTime(ms: kept.reduce(Int64(0)) { $0 << 8 | Int64($1) } & Int64.max)
    }
    try await save(max(floor, now) + ahead, in: store)
    return .milliseconds(max(0, floor.ms - now.ms))
  }

  /// Moves the time in the store on, until the task is cancelled.
  static func keep(_ context: ServerContext) async {
    var reserved = context.time.wall + context.numbersAhead + ahead
    while !Task.isCancelled {
      do { try await context.time.sleep(for: .seconds(5)) } catch { return }
      let now = context.time.wall + context.numbersAhead
      guard now + near >= reserved else { continue }
      do {
        try await save(now + ahead, in: context.store)
        reserved = now + ahead
      } catch {
        context.log.warning(
          "The floor of message numbers was not saved; it is tried again", ["fault": .init("\(error)")])
      }
    }
  }

  private static func save(_ floor: WallTime, in store: any Store) async throws(StoreFault) {
    let bytes = (0..<8).map { UInt8(truncatingIfNeeded: floor.ms >> Int64(8 * (7 - $0))) }
    try await store.saveSetting(setting, bytes)
  }
}
