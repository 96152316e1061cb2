import Glibc
import Seams
import Synchronization
import Telemetry
import Testing

final class Lines: Sendable {
  private let kept = Mutex<[String]>([])
  var all: [String] { kept.withLock { $0 } }
  @Sendable func take(_ line: [UInt8]) -> Bool {
    kept.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
    return true
  }
}

struct LogTests {
  let lines = Lines()
  let time = ManualTime()

  func log(_ form: LogSink.Form = .text, _ threshold: LogLevel? = .info, linesMax: Int = 3) -> (Log, LogSink)
  {
    let sink = LogSink(
      threshold: threshold, form: form, time: time, linesMax: linesMax, period: .seconds(10),
      output: lines.take)
    return (Log(sink: sink), sink)
  }

  @Test func aLineHoldsTimeLevelSentenceAndFields() {
    let (log, _) = log()
    log.with(["stream": 7]).info("stream opened", ["device": .init(12), "from": "10.0.0.1", "tls": true])
    #expect(
      lines.all == ["2023-11-14T22:13:20.000Z info stream opened stream=7 device=12 from=10.0.0.1 tls=true\n"]
    )
  }

  @Test func theJSONFormIsOneObjectALine() {
    let (log, _) = log(.json)
    log.warning("frame refused", ["code": "a\"b\\c\n\u{1}é", "took": .init(Duration.microseconds(1_500))])
    #expect(
      lines.all == [
        "{\"time\":\"2023-11-14T22:13:20.000Z\",\"level\":\"warning\",\"message\":\"frame refused\","
          + "\"code\":\"a\\\"b\\\\c\\n\\u0001é\",\"took\":1.5}\n"
      ])
  }

  @Test func aValueCannotBeginASecondLineOrField() {
    let (log, _) = log()
    log.info("login refused", ["user": "x\n2023 error all is lost key=1", "empty": ""])
    #expect(lines.all.count == 1)
    #expect(lines.all.first?.hasSuffix("user=\"x\\n2023 error all is lost key=1\" empty=\"\"\n") == true)
    #expect(lines.all.first?.dropLast().contains("\n") == false)
  }

  @Test func terminalControlsAndDirectionMarksAreEscaped() {
    let (log, _) = log()
    log.info("seen", ["a": "\u{1B}[2J", "b": "\u{202E}x", "c": "\u{9B}"])
    #expect(lines.all.first?.contains("a=\"\\u001b[2J\" b=\"\\u202ex\" c=\"\\u009b\"") == true)
  }

  @Test func belowTheThresholdTheFieldsAreNotMade() {
    let (log, sink) = log()
    var made = 0
    func fields() -> LogFields {
      made += 1
      return [:]
    }
    log.debug("quiet", fields())
    #expect(made == 0)
    #expect(lines.all.isEmpty)
    sink.setThreshold(.debug)
    log.debug("quiet", fields())
    #expect(made == 1)
    sink.setThreshold(nil)
    log.error("quiet too", fields())
    #expect(made == 1)
    Log.off.error("nothing", fields())
    #expect(made == 1)
  }

  @Test func aFloodOfOneSentenceIsHeldAndCounted() {
    let (log, _) = log()
    for number in 0..<10 { log.info("flood", ["n": .init(number)]) }
    log.info("another")
    #expect(lines.all.count == 4)
    time.advance(by: .seconds(10))
    log.info("flood")
    #expect(lines.all.last?.hasSuffix("flood suppressed=7\n") == true)
    log.info("flood")
    #expect(lines.all.last?.hasSuffix("flood\n") == true)
  }

  @Test func secretsShowTheirLengthOnly() {
    let secret = Redacted("AAAA-key")
    let (log, _) = log(.json)
    log.info("key made", ["key": .init(secret)])
    var dumped = ""
    dump(secret, to: &dumped)
    for text in [lines.all.joined(), "\(secret)", String(reflecting: secret), dumped, "\([secret])"] {
      #expect(!text.contains("AAAA"))
      #expect(text.contains("8 bytes"))
    }
    #expect(secret.revealed == "AAAA-key")
  }

  @Test(arguments: [LogSink.Form.text, .json])
  func aLineIsCutAtItsLimit(_ form: LogSink.Form) {
    let (log, _) = log(form)
    log.info("long", ["text": .init(String(repeating: "é", count: 10_000))])
    let line = lines.all.first ?? ""
    #expect(line.utf8.count <= LogSink.lineBytesMax)
    #expect(line.hasSuffix(form == .json ? "\"message\":\"long\",\"cut\":true}\n" : "é… cut=true\n"))
  }

  @Test func levelsAreReadByName() {
    #expect(LogLevel.allCases.map { LogLevel(name: $0.name.uppercased()) } == LogLevel.allCases)
    #expect(LogLevel(name: "loud") == nil)
    #expect(LogLevel.trace < .debug && LogLevel.warning < .error)
  }

  @Test func aPipeThatStandsLosesLinesAndBlocksNobody() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer { ends.forEach { _ = close($0) } }
    let sink = LogSink(threshold: .info, form: .text, time: time, descriptor: ends[1])
    let long = String(repeating: "x", count: 4_000)
    for _ in 0..<40 { Log(sink: sink).info("to the pipe", ["text": .init(long)]) }
    #expect(sink.linesLost > 0)
    var buffer = [UInt8](repeating: 0, count: 64)
    #expect(read(ends[0], &buffer, 64) == 64)
    #expect(String(decoding: buffer, as: UTF8.self).contains("info to the pipe text=x"))
  }
}
