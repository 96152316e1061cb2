/// The parts of date and time that a reminder asks for; what is nil may be anything.
///
/// The smallest part that is given decides the rhythm: parts below it are at their beginning (`hour: 9` is 09:00:00 each
/// day, `day: 1` is midnight of each first), parts above it that are nil run through all values (`minute: 30` is each
/// half past).
public struct CalendarFields: Sendable, Hashable {
  /// The year.
  public var year: Int?
  /// 1 to 12.
  public var month: Int?
  /// 1 to 31.
  ///
  /// A month without this day is left out.
  public var day: Int?
  /// 1 is Sunday, 7 is Saturday.
  public var weekday: Int?
  /// With ``weekday``: the first to fifth of its kind in the month.
  public var weekdayOrdinal: Int?
  /// 0 to 23.
  public var hour: Int?
  /// 0 to 59.
  public var minute: Int?
  /// 0 to 59.
  public var second: Int?

  /// Puts parts together.
  public init(
    year: Int? = nil, month: Int? = nil, day: Int? = nil, weekday: Int? = nil, weekdayOrdinal: Int? = nil,
    hour: Int? = nil, minute: Int? = nil, second: Int? = nil
  ) {
    self.year = year
    self.month = month
    self.day = day
    self.weekday = weekday
    self.weekdayOrdinal = weekdayOrdinal
    self.hour = hour
    self.minute = minute
    self.second = second
  }

  /// Whether there is at least one part and each lies in its range.
  public var isValid: Bool {
    func fits(_ value: Int?, _ range: ClosedRange<Int>) -> Bool { value.map(range.contains) ?? true }
    let parts = [year, month, day, weekday, weekdayOrdinal, hour, minute, second]
    return parts.contains { $0 != nil } && fits(year, 1...9_999) && fits(month, 1...12) && fits(day, 1...31)
      && fits(weekday, 1...7) && fits(weekdayOrdinal, 1...5) && (weekdayOrdinal == nil || weekday != nil)
      && fits(hour, 0...23) && fits(minute, 0...59) && fits(second, 0...59)
  }

  /// Whether every hour counts: then the pattern is about what a clock shows, not about times of a day.
  var isHourly: Bool { hour == nil && (minute != nil || second != nil) }

  /// The next moment after `seconds` (since 1970, UTC) at which clocks of `zone` show these parts.
  ///
  /// Where clocks jump forward over a time of day, its moment is the jump. A time of day that clocks show twice counts
  /// the first time. A pattern without an hour fires whenever the clock shows it: not for a time that was jumped over,
  /// twice for one that is shown twice.
  /// - Returns: Nil when there is none within the next 100 years.
  public func nextMoment(after seconds: Int64, in zone: ZoneRules) -> Int64? {
    guard isValid else { return nil }
    let limit = seconds &+ 100 * 366 * 86_400
    var from = seconds &+ 1
    while from < limit {
      let span = zone.span(at: from)
      var local = from &+ span.offset
      if span.start != .min, span.offset < span.offsetBefore, !isHourly {
        // The clocks went back: they show for the second time what is before this.
        local = max(local, span.start &+ span.offsetBefore)
      }
      if span.start == from, span.offset > span.offsetBefore, !isHourly {
        let gap = span.start &+ span.offsetBefore..<span.start &+ span.offset
        if let missing = nextLocal(from: gap.lowerBound, to: gap.upperBound), gap.contains(missing) {
          return span.start
        }
      }
      let end = span.end == .max ? limit : min(span.end, limit)
      if let found = nextLocal(from: local, to: end &+ span.offset) { return found &- span.offset }
      from = end
    }
    return nil
  }

  // MARK: Without zones

  /// The first local second in `from..<to` that fits.
  private func nextLocal(from: Int64, to: Int64) -> Int64? {
    guard from < to else { return nil }
    var dayNumber = floorDivide(from, 86_400)
    let lastDay = floorDivide(to - 1, 86_400)
    var secondOfDay = from - dayNumber * 86_400
    while dayNumber <= lastDay {
      let date = CivilDay(daysSince1970: dayNumber)
      if let skip = daysToSkip(date) {
        dayNumber += skip
        secondOfDay = 0
        continue
      }
      if let second = nextSecond(from: secondOfDay) {
        let found = dayNumber * 86_400 + second
        return found < to ? found : nil
      }
      dayNumber += 1
      secondOfDay = 0
    }
    return nil
  }

  /// Nil when the date fits, else how many days are surely without a fit, this one included.
  private func daysToSkip(_ date: CivilDay) -> Int64? {
    if let year, year != date.year {
      guard year > date.year else { return 40_000 }
      return CivilDay(year: year, month: 1, day: 1).daysSince1970 - date.daysSince1970
    }
    let lowestBelow = hour == nil && minute == nil && second == nil
    let month = month ?? (lowestBelow && day == nil && weekday == nil ? 1 : nil)
    if let month, month != date.month {
      return Int64(CivilDay.days(in: date.month, of: date.year) - date.day + 1)
    }
    let day = day ?? (lowestBelow && weekday == nil ? 1 : nil)
    if let day, day != date.day { return 1 }
    if let weekday, weekday != date.weekday { return 1 }
    if let weekdayOrdinal, (date.day - 1) / 7 + 1 != weekdayOrdinal { return 1 }
    return nil
  }

  /// The first fitting second of a day that is not before `from`.
  private func nextSecond(from: Int64) -> Int64? {
    let isSecondly = second == nil ? false : true
    let hours = hour.map { $0...$0 } ?? (minute == nil && second == nil ? 0...0 : 0...23)
    let minutes = minute.map { $0...$0 } ?? (isSecondly ? 0...59 : 0...0)
    let second = Int64(second ?? 0)
    for hour in hours where Int64(hour) * 3_600 + 3_599 >= from {
      for minute in minutes {
        let found = Int64(hour) * 3_600 + Int64(minute) * 60 + second
        if found >= from { return found }
      }
    }
    return nil
  }
}
