import Foundation
import Testing

@testable import NotificationCore

/// Firing times as Python's `zoneinfo` sees them: another reader of zone files, and no search but a walk over every
/// quarter of an hour that local clocks could show.
enum CalendarOracle {
  struct Case: Sendable, CustomStringConvertible {
    var zone: String
    var name: String
    var fields: CalendarFields
    var description: String { "\(name) in \(zone)" }
  }

  /// The script; per line of input `zone year month day weekday ordinal hour minute` with `-` for nothing, it prints
  /// the moments of 2024 up to 2034 in one line.
  static let script = #"""
    import sys
    from datetime import datetime, timedelta, timezone
    from zoneinfo import ZoneInfo
    UTC, DAY, QUARTER = timezone.utc, timedelta(days=1), timedelta(minutes=15)
    def look(naive, zone):
        first = naive.replace(tzinfo=zone).astimezone(UTC)
        second = naive.replace(tzinfo=zone, fold=1).astimezone(UTC)
        if first.astimezone(zone).replace(tzinfo=None) == naive: return first, second, None
        # Not shown: the first quarter of an hour, in UTC, whose local time is beyond it.
        jump = min(first, second) - timedelta(hours=3)
        while jump.astimezone(zone).replace(tzinfo=None) < naive: jump += QUARTER
        return first, second, jump
    walks = {}
    def walk(name):
        if name in walks: return walks[name]
        zone, steps = ZoneInfo(name), {}
        midnight = datetime(2023, 12, 30)
        while midnight < datetime(2034, 1, 3):
            offsets = {(midnight + timedelta(hours=h)).replace(tzinfo=zone).utcoffset() for h in (-3, 12, 27)}
            for quarter in range(96):
                naive = midnight + quarter * QUARTER
                if len(offsets) > 1: seen = look(naive, zone)
                else:
                    moment = (naive - next(iter(offsets))).replace(tzinfo=UTC)
                    seen = moment, moment, None
                steps.setdefault((naive.hour, naive.minute), []).append((naive, *seen))
            midnight += DAY
        walks[name] = steps
        return steps
    begin, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2034, 1, 1, tzinfo=UTC)
    for line in sys.stdin:
        zone, *rest = line.split()
        year, month, day, weekday, ordinal, hour, minute = [None if p == '-' else int(p) for p in rest]
        hourly = hour is None and minute is not None
        # What lies below the smallest part that is given is at its beginning.
        if hour is None and minute is None and day is None and weekday is None:
            day = 1
            if month is None: month = 1
        if minute is None: minute = 0
        if not hourly and hour is None: hour = 0
        found = set()
        steps = walk(zone)
        for key in [(hour, minute)] if hour is not None else [(h, minute) for h in range(24)]:
            for naive, first, second, jump in steps[key]:
                if year is not None and naive.year != year or month is not None and naive.month != month: continue
                if day is not None and naive.day != day: continue
                if weekday is not None and naive.isoweekday() % 7 + 1 != weekday: continue
                if ordinal is not None and (naive.day - 1) // 7 + 1 != ordinal: continue
                if jump is None:
                    found.add(first)
                    if hourly: found.add(second)
                elif not hourly: found.add(jump)
        print(*sorted(int(m.timestamp()) for m in found if begin < m < end))
    """#

  static func moments(_ cases: [Case]) throws -> [[Int64]] {
    let lines = cases.map { item in
      let parts = [
        item.fields.year, item.fields.month, item.fields.day, item.fields.weekday,
        item.fields.weekdayOrdinal, item.fields.hour, item.fields.minute,
      ]
      return ([item.zone] + parts.map { $0.map(String.init) ?? "-" }).joined(separator: " ")
    }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", script]
    let input = Pipe()
    let output = Pipe()
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    input.fileHandleForWriting.write(Data((lines.joined(separator: "\n") + "\n").utf8))
    try input.fileHandleForWriting.close()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    return text.split(separator: "\n", omittingEmptySubsequences: false).prefix(cases.count).map { line in
      line.split(separator: " ").compactMap { Int64($0) }
    }
  }

  static func zone(_ name: String) throws -> ZoneRules {
    let data = try Data(contentsOf: URL(fileURLWithPath: "/usr/share/zoneinfo/" + name))
    return try ZoneRules(tzif: Array(data))
  }
}
