/// A time zone as spans of constant distance to UTC.
///
/// - Source: RFC 8536, "The Time Zone Information Format", versions 1 to 4.
public struct ZoneRules: Sendable, Hashable {
  /// Why bytes are no time zone.
  public struct Fault: Error, Sendable, Hashable, CustomStringConvertible {
    /// For people.
    public var description: String
  }

  /// From `start` up to `end` (seconds since 1970, UTC) local clocks are `offset` seconds ahead of UTC.
  public struct Span: Sendable, Hashable {
    /// The first second; `Int64.min` for the oldest.
    public var start: Int64
    /// The first second after; `Int64.max` for the last.
    public var end: Int64
    /// Seconds east of Greenwich.
    public var offset: Int64
    /// What held before `start`.
    public var offsetBefore: Int64
  }

  /// Rules that a footer gives are written out up to this year; later the last of them holds.
  static let lastYear = 2150

  /// Rising; `offsets[n]` holds from `starts[n]`.
  private var starts: [Int64] = []
  private var offsets: [Int64] = []
  private var firstOffset: Int64

  /// A zone that never changes its clocks.
  public init(fixedOffset seconds: Int64) { firstOffset = seconds }

  /// UTC.
  public static let utc = ZoneRules(fixedOffset: 0)

  /// Reads the bytes of a file of the zone database.
  public init(tzif bytes: [UInt8]) throws(Fault) {
    var reader = TZifReader(bytes)
    let data = try reader.read()
    firstOffset = data.firstOffset
    for (start, offset) in data.transitions { add(start, offset) }
    if let footer = data.footer {
      // The footer holds from the last transition on (section 3.3).
      let last = starts.last ?? Int64.min
      let year = starts.last.map { CivilDay(daysSince1970: floorDivide($0, 86_400)).year } ?? 1970
      if let rule = footer.daylight {
        for year in min(max(1970, year), Self.lastYear)...Self.lastYear {
          let on = (rule.begin.seconds(in: year) - footer.offset, rule.offset)
          let off = (rule.end.seconds(in: year) - rule.offset, footer.offset)
          for (start, offset) in on.0 < off.0 ? [on, off] : [off, on] where start > last {
            add(start, offset)
          }
        }
      } else if starts.isEmpty {
        firstOffset = footer.offset
      }
    }
  }

  private mutating func add(_ start: Int64, _ offset: Int64) {
    // Some files begin with a transition before all time; sums of what lies in these bounds stay small.
    guard start > -100_000_000_000 else {
      firstOffset = offset
      return
    }
    guard start < 100_000_000_000, start > starts.last ?? .min else { return }
    guard offset != (offsets.last ?? firstOffset) else { return }
    starts.append(start)
    offsets.append(offset)
  }

  /// The span that holds a moment, given in seconds since 1970.
  public func span(at seconds: Int64) -> Span {
    // The number of starts that are not later.
    var low = 0
    var high = starts.count
    while low < high {
      let middle = (low + high) / 2
      if starts[middle] <= seconds { low = middle + 1 } else { high = middle }
    }
    let offset = low == 0 ? firstOffset : offsets[low - 1]
    return Span(
      start: low == 0 ? .min : starts[low - 1], end: low < starts.count ? starts[low] : .max,
      offset: offset, offsetBefore: low <= 1 ? firstOffset : offsets[low - 2])
  }

  /// Local seconds since 1970 of a moment: what the clocks show, as if it were UTC.
  public func local(_ seconds: Int64) -> Int64 { seconds &+ span(at: seconds).offset }
}

/// Division that rounds down.
func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
  let quotient = value / divisor
  return value % divisor != 0 && (value < 0) != (divisor < 0) ? quotient - 1 : quotient
}

/// A day of the proleptic Gregorian calendar.
struct CivilDay: Sendable, Hashable {
  var year: Int
  /// 1 to 12.
  var month: Int
  /// 1 to 31.
  var day: Int

  init(year: Int, month: Int, day: Int) {
    self.year = year
    self.month = month
    self.day = day
  }

  /// - Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
  init(daysSince1970 days: Int64) {
    let shifted = days + 719_468
    let era = floorDivide(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = Int(dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    month = Int(monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9)
    year = Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0)
  }

  /// - Source: the same, `days_from_civil`.
  var daysSince1970: Int64 {
    let year = Int64(month <= 2 ? year - 1 : year)
    let era = floorDivide(year, 400)
    let yearOfEra = year - era * 400
    let monthFromMarch = Int64(month > 2 ? month - 3 : month + 9)
    let dayOfYear = (153 * monthFromMarch + 2) / 5 + Int64(day) - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// 1 is Sunday, 7 is Saturday.
  var weekday: Int { Int((daysSince1970 % 7 + 11) % 7) + 1 }

  static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

  static func days(in month: Int, of year: Int) -> Int {
    switch month {
    case 2: isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}
