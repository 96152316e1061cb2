/// A wall time as UTC calendar fields, for logs and the HTTP `Date` header.
///
/// No locale, no time zone.
package struct CivilTime: Hashable, Sendable {
  package var year: Int
  /// 1 to 12.
  package var month: Int
  /// 1 to 31.
  package var day: Int
  package var hour: Int
  package var minute: Int
  package var second: Int
  package var millisecond: Int
  /// 0 is Sunday.
  package var weekday: Int

  /// Exact for every year of the proleptic Gregorian calendar that 63 bits of milliseconds can name.
  ///
  /// - Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
  package init(_ time: WallTime) {
    let msOfDay = Self.floorMod(time.ms, 86_400_000)
    let days = Int((time.ms &- msOfDay) / 86_400_000)
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    weekday = Int(Self.floorMod(Int64(days) + 4, 7))
    let secondOfDay = Int(msOfDay) / 1_000
    hour = secondOfDay / 3_600
    minute = secondOfDay / 60 % 60
    second = secondOfDay % 60
    millisecond = Int(msOfDay) % 1_000
  }

  private static func floorMod(_ value: Int64, _ divisor: Int64) -> Int64 {
    let rest = value % divisor
    return rest < 0 ? rest + divisor : rest
  }
}
