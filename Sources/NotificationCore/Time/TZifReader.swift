/// Reads the bytes of a zone file (RFC 8536 section 3); every count in them is checked against what is there.
struct TZifReader {
  struct Contents {
    var firstOffset: Int64
    var transitions: [(start: Int64, offset: Int64)]
    var footer: PosixZone?
  }

  private let bytes: [UInt8]
  private var at = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  private struct Header {
    var version: UInt8
    var utCount, standardCount, leapCount, timeCount, typeCount, nameCount: Int

    /// Bytes of the data block behind it.
    func size(timeSize: Int) -> Int {
      timeCount * timeSize + timeCount + typeCount * 6 + nameCount + leapCount * (timeSize + 4)
        + standardCount + utCount
    }
  }

  mutating func read() throws(ZoneRules.Fault) -> Contents {
    let first = try header()
    guard first.version >= UInt8(ascii: "2") else { return try block(first, timeSize: 4) }
    at += first.size(timeSize: 4)
    let second = try header()
    var contents = try block(second, timeSize: 8)
    guard at < bytes.count, bytes[at] == UInt8(ascii: "\n") else { throw fault("no footer") }
    let text = bytes[(at + 1)...].prefix { $0 != UInt8(ascii: "\n") }
    guard text.endIndex < bytes.endIndex else { throw fault("no end of the footer") }
    if !text.isEmpty {
      guard let zone = PosixZone(Array(text)) else { throw fault("footer") }
      contents.footer = zone
    }
    return contents
  }

  private mutating func header() throws(ZoneRules.Fault) -> Header {
    guard bytes.count - at >= 44, Array(bytes[at..<(at + 4)]) == Array("TZif".utf8) else {
      throw fault("no TZif header")
    }
    let version = bytes[at + 4]
    at += 20
    var counts: [Int] = []
    for _ in 0..<6 { counts.append(Int(try number(4))) }
    // Far above any zone there is; keeps sums small.
    guard counts.allSatisfy({ (0...100_000).contains($0) }) else { throw fault("count") }
    return Header(
      version: version, utCount: counts[0], standardCount: counts[1], leapCount: counts[2],
      timeCount: counts[3], typeCount: counts[4], nameCount: counts[5])
  }

  private mutating func block(_ header: Header, timeSize: Int) throws(ZoneRules.Fault) -> Contents {
    guard header.typeCount > 0, bytes.count - at >= header.size(timeSize: timeSize) else {
      throw fault("truncated")
    }
    var times: [Int64] = []
    for _ in 0..<header.timeCount { times.append(try number(timeSize)) }
    let types = bytes[at..<(at + header.timeCount)].map { Int($0) }
    at += header.timeCount
    var offsets: [Int64] = []
    for _ in 0..<header.typeCount {
      offsets.append(try number(4))
      at += 2
    }
    at += header.size(timeSize: timeSize) - header.timeCount * (timeSize + 1) - header.typeCount * 6
    var transitions: [(start: Int64, offset: Int64)] = []
    for (time, type) in zip(times, types) {
      guard offsets.indices.contains(type) else { throw fault("type") }
      transitions.append((time, offsets[type]))
    }
    return Contents(firstOffset: offsets[0], transitions: transitions, footer: nil)
  }

  /// A signed big-endian number of 4 or 8 bytes.
  private mutating func number(_ size: Int) throws(ZoneRules.Fault) -> Int64 {
    guard bytes.count - at >= size else { throw fault("truncated") }
    var value: UInt64 = 0
    for byte in bytes[at..<(at + size)] { value = value << 8 | UInt64(byte) }
    at += size
    return size == 4 ? Int64(Int32(truncatingIfNeeded: value)) : Int64(bitPattern: value)
  }

  private func fault(_ what: String) -> ZoneRules.Fault { ZoneRules.Fault(description: "zone file: \(what)") }
}

/// The text behind a zone file: a zone by POSIX rules, with the extensions of RFC 8536 section 3.3.1.
struct PosixZone: Sendable, Hashable {
  /// When a year's change is: a day and local seconds from its midnight, which may lie beyond it.
  struct Change: Sendable, Hashable {
    enum Day: Sendable, Hashable {
      /// 1 to 365; 29 February is never counted.
      case julian(Int)
      /// 0 to 365.
      case zeroBased(Int)
      /// Month, week (5 is the last), weekday (0 is Sunday).
      case weekday(Int, Int, Int)
    }
    var day: Day
    var seconds: Int64

    /// Local seconds since 1970, by the clock that holds before the change.
    func seconds(in year: Int) -> Int64 {
      let first = CivilDay(year: year, month: 1, day: 1).daysSince1970
      let day: Int64
      switch self.day {
      case .julian(let number):
        day = first + Int64(number) - 1 + (CivilDay.isLeap(year) && number >= 60 ? 1 : 0)
      case .zeroBased(let number): day = first + Int64(number)
      case .weekday(let month, let week, let weekday):
        let start = CivilDay(year: year, month: month, day: 1)
        var date = 1 + (weekday - (start.weekday - 1) + 7) % 7 + (week - 1) * 7
        if date > CivilDay.days(in: month, of: year) { date -= 7 }
        day = start.daysSince1970 + Int64(date) - 1
      }
      return day * 86_400 + seconds
    }
  }

  struct Daylight: Sendable, Hashable {
    var offset: Int64
    var begin: Change
    var end: Change
  }

  var offset: Int64
  var daylight: Daylight?

  /// - Returns: Nil when it is no such text.
  init?(_ text: [UInt8]) {
    var reader = PosixZoneReader(text)
    guard reader.name(), let west = reader.time() else { return nil }
    offset = -west
    guard !reader.isAtEnd else { return }
    guard reader.name() else { return nil }
    var summer = offset + 3_600
    if !reader.sees(",") {
      guard let west = reader.time() else { return nil }
      summer = -west
    }
    guard let begin = reader.change(), let end = reader.change(), reader.isAtEnd else { return nil }
    daylight = Daylight(offset: summer, begin: begin, end: end)
  }
}

private struct PosixZoneReader {
  private let text: [UInt8]
  private var at = 0

  init(_ text: [UInt8]) { self.text = text }

  var isAtEnd: Bool { at == text.count }

  func sees(_ character: Unicode.Scalar) -> Bool { at < text.count && text[at] == UInt8(ascii: character) }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard sees(character) else { return false }
    at += 1
    return true
  }

  /// `CET`, or `<+0330>`.
  mutating func name() -> Bool {
    if take("<") {
      while at < text.count, text[at] != UInt8(ascii: ">") { at += 1 }
      return take(">")
    }
    let start = at
    while at < text.count, (65...90).contains(text[at] & 0xDF) { at += 1 }
    return at > start
  }

  private mutating func number(max: Int64) -> Int64? {
    let start = at
    var value: Int64 = 0
    while at < text.count, (48...57).contains(text[at]) {
      value = value * 10 + Int64(text[at] - 48)
      if value > max { return nil }
      at += 1
    }
    return at > start ? value : nil
  }

  /// `[+-]hh[:mm[:ss]]` in seconds; up to 167 hours.
  mutating func time() -> Int64? {
    let isNegative = take("-")
    if !isNegative { _ = take("+") }
    guard var seconds = number(max: 167).map({ $0 * 3_600 }) else { return nil }
    for unit: Int64 in [60, 1] where take(":") {
      guard let part = number(max: 59) else { return nil }
      seconds += part * unit
    }
    return isNegative ? -seconds : seconds
  }

  /// `,Mm.w.d[/time]`, `,Jn[/time]` or `,n[/time]`.
  mutating func change() -> PosixZone.Change? {
    guard take(",") else { return nil }
    let day: PosixZone.Change.Day
    if take("M") {
      guard let month = number(max: 12), month > 0, take("."), let week = number(max: 5), week > 0,
        take("."), let weekday = number(max: 6)
      else { return nil }
      day = .weekday(Int(month), Int(week), Int(weekday))
    } else if take("J") {
      guard let number = number(max: 365), number > 0 else { return nil }
      day = .julian(Int(number))
    } else {
      guard let number = number(max: 365) else { return nil }
      day = .zeroBased(Int(number))
    }
    guard take("/") else { return PosixZone.Change(day: day, seconds: 7_200) }
    return time().map { PosixZone.Change(day: day, seconds: $0) }
  }
}
