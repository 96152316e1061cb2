import Seams
import Testing

struct CivilTimeTests {
  @Test(arguments: [
    (0, [1970, 1, 1, 0, 0, 0, 0, 4]),
    (951_782_400_000, [2000, 2, 29, 0, 0, 0, 0, 2]),
    (784_111_777_000, [1994, 11, 6, 8, 49, 37, 0, 0]),
    (1_700_000_000_123, [2023, 11, 14, 22, 13, 20, 123, 2]),
    (-1, [1969, 12, 31, 23, 59, 59, 999, 3]),
    (4_107_542_399_999, [2100, 2, 28, 23, 59, 59, 999, 0]),
    (4_107_542_400_000, [2100, 3, 1, 0, 0, 0, 0, 1]),
  ])
  func aWallTimeIsThatDayAndHour(_ ms: Int, _ fields: [Int]) {
    let civil = CivilTime(WallTime(ms: Int64(ms)))
    #expect(
      [
        civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second, civil.millisecond,
        civil.weekday,
      ] == fields)
  }
}
