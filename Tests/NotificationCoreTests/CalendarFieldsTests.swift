import Foundation
import Testing

@testable import NotificationCore

struct CalendarFieldsTests {
  /// Summer time by an hour and by half an hour, in both hemispheres, at midnight, and none.
  static let zones = [
    "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana",
    "Asia/Kathmandu",
  ]

  static let patterns: [(String, CalendarFields)] = [
    ("nine each morning", CalendarFields(hour: 9)),
    ("half past two, which some days lack and some have twice", CalendarFields(hour: 2, minute: 30)),
    ("a quarter past one", CalendarFields(hour: 1, minute: 15)),
    ("midnight", CalendarFields(hour: 0, minute: 0)),
    ("Mondays", CalendarFields(weekday: 2)),
    ("the 31st", CalendarFields(day: 31, hour: 23, minute: 45)),
    ("the 30th at midnight", CalendarFields(day: 30)),
    ("29 February", CalendarFields(month: 2, day: 29, hour: 12)),
    ("Friday the 13th", CalendarFields(day: 13, weekday: 6, hour: 13)),
    ("the last possible Sunday, the fifth", CalendarFields(weekday: 1, weekdayOrdinal: 5, hour: 2)),
    ("the second Sunday of March", CalendarFields(month: 3, weekday: 1, weekdayOrdinal: 2, hour: 2)),
    ("all of 2027's June evenings", CalendarFields(year: 2027, month: 6, hour: 18, minute: 15)),
    ("new year", CalendarFields(month: 1)),
    ("2030", CalendarFields(year: 2030)),
  ]

  @Test func tenYearsInSixZonesAgreeWithAnIndependentComputation() throws {
    let cases =
      Self.zones.flatMap { zone in
        Self.patterns.map { CalendarOracle.Case(zone: zone, name: $0.0, fields: $0.1) }
      }
      // By the hour it is 87,600 moments a zone: where clocks jump by an hour, and by half of one.
      + ["Europe/Berlin", "Australia/Lord_Howe"].map {
        CalendarOracle.Case(zone: $0, name: "half past each hour", fields: CalendarFields(minute: 30))
      }
    let expected = try CalendarOracle.moments(cases)
    try #require(expected.count == cases.count)
    var compared = 0
    for (item, wanted) in zip(cases, expected) {
      let zone = try CalendarOracle.zone(item.zone)
      var found: [Int64] = []
      var at: Int64 = 1_704_067_200
      while let next = item.fields.nextMoment(after: at, in: zone), next < 2_019_686_400 {
        found.append(next)
        at = next
      }
      // Thousands of numbers: the first that differs is told.
      if found != wanted {
        let difference = Set(found).symmetricDifference(wanted).sorted().prefix(3)
        Issue.record("\(item): \(found.count) and \(wanted.count), first \(Array(difference))")
      }
      compared += wanted.count
    }
    #expect(compared > 250_000)
  }

  @Test func clocksThatJumpOverAReminderShowItAtTheJump() throws {
    let berlin = try CalendarOracle.zone("Europe/Berlin")
    // 2026-03-29: 02:00 becomes 03:00 at 01:00 UTC. From the day before, 12:00 UTC.
    let next = CalendarFields(hour: 2, minute: 30).nextMoment(after: 1_774_699_200, in: berlin)
    #expect(next == 1_774_746_000)
    // By the hour nothing is made up: 01:30, then 03:30 half an hour after the jump.
    #expect(CalendarFields(minute: 30).nextMoment(after: 1_774_744_200, in: berlin) == 1_774_747_800)
  }

  @Test func aTimeThatClocksShowTwiceCountsOnce() throws {
    let berlin = try CalendarOracle.zone("Europe/Berlin")
    // 2026-10-25: 02:30 summer time is 00:30 UTC, and comes again at 01:30 UTC.
    let fields = CalendarFields(hour: 2, minute: 30)
    #expect(fields.nextMoment(after: 1_792_886_400, in: berlin) == 1_792_888_200)
    #expect(fields.nextMoment(after: 1_792_888_200, in: berlin) == 1_792_978_200)
    #expect(CalendarFields(minute: 30).nextMoment(after: 1_792_888_200, in: berlin) == 1_792_891_800)
  }

  @Test func secondsAndUnevenOffsetsWork() throws {
    let kathmandu = try CalendarOracle.zone("Asia/Kathmandu")
    // 2024-01-01 00:00:00 UTC is 05:45:00 there.
    #expect(CalendarFields(second: 10).nextMoment(after: 1_704_067_200, in: kathmandu) == 1_704_067_210)
    #expect(
      CalendarFields(hour: 5, minute: 45, second: 1).nextMoment(after: 1_704_067_200, in: kathmandu)
        == 1_704_067_201)
    #expect(
      CalendarFields(hour: 6, second: 7).nextMoment(after: 1_704_067_200, in: kathmandu) == 1_704_068_107)
  }

  @Test func whatNeverComesIsNil() {
    #expect(CalendarFields(year: 2020, month: 1, day: 1).nextMoment(after: 1_704_067_200, in: .utc) == nil)
    #expect(CalendarFields(month: 2, day: 30).nextMoment(after: 0, in: .utc) == nil)
    for fields in [
      CalendarFields(), CalendarFields(hour: 24), CalendarFields(month: 13), CalendarFields(day: 0),
      CalendarFields(weekday: 8), CalendarFields(minute: 60), CalendarFields(weekdayOrdinal: 1),
    ] {
      #expect(!fields.isValid)
      #expect(fields.nextMoment(after: 0, in: .utc) == nil)
    }
  }

  @Test func offsetsOfAllZonesAgreeWithFoundation() throws {
    // Eight moments a year of 60 years, in every zone the system has.
    var compared = 0
    for name in TimeZone.knownTimeZoneIdentifiers {
      guard let zone = TimeZone(identifier: name), let rules = try? CalendarOracle.zone(name) else {
        continue
      }
      for year in 0..<60 {
        for part in 0..<8 {
          let at = Int64(year) * 31_556_952 + Int64(part) * 3_944_619
          #expect(
            rules.span(at: at).offset
              == Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(at)))),
            "\(name) at \(at)")
          compared += 1
        }
      }
    }
    #expect(compared > 100_000)
  }

  @Test func brokenZoneFilesAreRefusedAndNeverTrap() throws {
    let whole = Array(try Data(contentsOf: URL(fileURLWithPath: "/usr/share/zoneinfo/Europe/Berlin")))
    for count in 0..<whole.count {
      #expect(throws: ZoneRules.Fault.self) { try ZoneRules(tzif: Array(whole.prefix(count))) }
    }
    for index in whole.indices {
      var bytes = whole
      bytes[index] ^= 0xFF
      _ = try? ZoneRules(tzif: bytes)
    }
  }

  @Test(arguments: ["", "CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.1.0,M1.1.0", "<+03", "X-200"])
  func brokenFootersAreRefused(_ text: String) {
    #expect(PosixZone(Array(text.utf8)) == nil)
  }

  @Test func footersOfEveryFormAreRead() throws {
    #expect(PosixZone(Array("UTC0".utf8))?.offset == 0)
    #expect(PosixZone(Array("<+0545>-5:45".utf8))?.offset == 20_700)
    let julian = try #require(PosixZone(Array("AAA3BBB,J60/-1,59/25:30:15".utf8))?.daylight)
    #expect(julian.offset == -7_200)
    // 1 March 2024 less an hour, and the 59th day from 0, 29 February, 25:30:15 later.
    #expect(julian.begin.seconds(in: 2024) == 1_709_251_200 - 3_600)
    #expect(julian.end.seconds(in: 2024) == 1_709_164_800 + 91_815)
  }
}
