import Foundation
import JSONCore
import StreamClient
import Synchronization
import Telemetry
import Testing

@testable import WeirCommand

/// A file that goes with its object.
private final class ScratchFile {
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("weir-\(UUID().uuidString)").path

  init(_ text: String? = nil) throws {
    if let text { try text.write(toFile: path, atomically: true, encoding: .utf8) }
  }

  var text: String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
  var lines: [String] { text.split(separator: "\n").map(String.init) }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

@Suite struct BulkTableTests {
  private func records(_ text: String) throws -> (columns: [String], records: [[String]?]) {
    let file = try ScratchFile(text)
    var reader = try CSVReader(LineReader(path: file.path), path: "people.csv")
    var records: [[String]?] = []
    while let record = reader.next() { records.append(try? record.get()) }
    return (reader.columns, records)
  }

  private func fault(_ body: () throws -> Void) -> String? {
    do { try body() } catch let fault as UsageFault { return fault.message } catch {}
    return nil
  }

  @Test func fieldsMayBeQuotedAndHoldCommasQuotesAndLineBreaks() throws {
    let read = try records("token,name\r\na,\"Ann, \"\"A\"\"\"\r\nb,\"two\nlines\"\r\n\"c\",\r\n")
    #expect(read.columns == ["token", "name"])
    #expect(read.records == [["a", "Ann, \"A\""], ["b", "two\nlines"], ["c", ""]])
  }

  @Test func aByteOrderMarkAndEmptyLinesAreNoFields() throws {
    let read = try records("\u{FEFF}token\n\nx\n")
    #expect(read.columns == ["token"])
    #expect(read.records == [[], ["x"]])
  }

  @Test func aRecordWithTooFewFieldsOrAnOpenQuoteIsRefusedAlone() throws {
    #expect(try records("a,b\n1\n2,3\n").records == [nil, ["2", "3"]])
    #expect(try records("a,b\n1,2\n\"3,4\n5,6\n").records == [["1", "2"], nil])
  }

  @Test func aTableWithoutNamesIsRefused() throws {
    #expect(fault { _ = try records("") }?.contains("is empty") == true)
    #expect(fault { _ = try records("a,a\n") }?.contains("two columns have the same name") == true)
  }

  @Test func placesAreFilledAndEscaped() throws {
    let template = try BulkTemplate(
      "{\"to\":\"{{token}}\",\n \"time_to_live\": {{ttl}}, \"data\":{\"hi\":\"Dear {{ first name }}!\"}}",
      columns: ["token", "first name", "ttl"])
    let message = try template.fill(["t\"1\\", "Ann\n{{token}}", "60"]).get()
    let value = try JSONValue(parsing: message)
    #expect(value["to"]?.string == "t\"1\\")
    #expect(value["time_to_live"]?.int == 60)
    #expect(value["data"]?["hi"]?.string == "Dear Ann\n{{token}}!")
    #expect(!message.contains(0x0A))
  }

  @Test(arguments: ["", "abc", "1 2", "\"x\"", "{}", "[1]"])
  func aPlaceOutsideOfATextTakesNoOtherJSON(value: String) throws {
    let template = try BulkTemplate("{\"time_to_live\":{{ttl}}}", columns: ["ttl"])
    #expect(fault { _ = try template.fill([value]).get() }?.hasPrefix("column ttl:") == true)
  }

  @Test func aTemplateIsChecked() {
    func made(_ text: String) -> String? {
      fault { _ = try BulkTemplate(text, columns: ["token", "name"]) }
    }
    #expect(made("{\"to\":\"{{tokn}}\"}") == "The template names {{tokn}}, but the columns are: token, name.")
    #expect(made("{\"to\":\"{{token}}\"")?.contains("no JSON object") == true)
    #expect(made("[\"{{token}}\"]")?.contains("no JSON object") == true)
    #expect(made("{\"to\":\"x\",\"data\":{\"a\":\"{ {\",\"b\":{}}}") == nil)
  }

  @Test func aLineThatIsTooLongIsCutAndTheNextIsWhole() throws {
    let file = try ScratchFile(String(repeating: "x", count: 3 << 20) + "\nnext\n")
    var reader = try LineReader(path: file.path)
    #expect(reader.next()?.count == LineReader.lineBytesMax)
    #expect(reader.next() == Array("next".utf8))
    #expect(reader.next() == nil)
    #expect(reader.bytesUsed == (3 << 20) + 6)
  }
}

@Suite struct BulkJobTests {
  private func source(
    _ text: String, template: String? = nil, keepsMessages: Bool = false,
    refused: @escaping @Sendable (Int, String, [UInt8]?) -> Void = { _, _, _ in }
  ) throws -> (LineSource, ScratchFile) {
    let file = try ScratchFile(text)
    let input = try BulkInput(path: file.path, template: template)
    return (
      LineSource(
        input, job: "job", finished: try BulkCheckpoint(path: nil), keepsMessages: keepsMessages,
        refused: refused), file
    )
  }

  @Test func recordsOfATableBecomeMessagesWithIDs() async throws {
    let (source, file) = try source("token,name\na,Ann\nb,Bob\n", template: "{\"to\":\"{{token}}\"}")
    var iterator = source.makeAsyncIterator()
    #expect(await iterator.next()?.id == "job-0")
    #expect(await iterator.next()?.id == "job-1")
    #expect(await iterator.next() == nil)
    _ = file
  }

  @Test func anIDThatIsUnderWayAlreadyIsRefused() async throws {
    let told = Mutex<[String]>([])
    let (source, file) = try source(
      "{\"message_id\":\"a\"}\n{\"message_id\":\"a\"}\n{\"message_id\":\"b\"}\n"
    ) { line, why, _ in
      told.withLock { $0.append("\(line): \(why)") }
    }
    var iterator = source.makeAsyncIterator()
    #expect(await iterator.next()?.id == "a")
    #expect(await iterator.next()?.id == "b")
    #expect(told.withLock { $0 } == ["1: message_id repeats that of line 1, which is under way"])
    #expect(source.finish("a")?.line == 0)
    #expect(source.finish("a") == nil)
    _ = file
  }

  @Test func messagesAreKeptOnlyWhenSomebodyWantsThem() async throws {
    for keeps in [true, false] {
      let (source, file) = try source("{\"to\":\"a\",\"message_id\":\"m\"}\n", keepsMessages: keeps)
      var iterator = source.makeAsyncIterator()
      _ = await iterator.next()
      #expect((source.finish("m")?.message != nil) == keeps)
      _ = file
    }
  }

  @Test func thePacerSpreadsAndDoesNotMakeUpForAPause() {
    let pacer = Pacer(perSecond: 10)
    let start = ContinuousClock.now + .seconds(10)
    #expect(pacer.take(at: start) <= .zero)
    #expect(pacer.take(at: start) == .milliseconds(50))
    #expect(pacer.take(at: start) == .milliseconds(150))
    #expect(pacer.take(at: start + .seconds(60)) <= .zero)
    #expect(pacer.take(at: start + .seconds(60)) == .milliseconds(50))
  }

  @Test func aDryRunChecksByTheServersRules() throws {
    var check = BulkCheck()
    let token = String(repeating: "d", count: 22) + ":APA91b" + String(repeating: "t", count: 43)
    func fault(_ text: String) -> String? { check.fault(in: .success(Array(text.utf8))) }
    #expect(fault("{\"to\":\"\(token)\",\"data\":{\"k\":\"v\"}}") == nil)
    #expect(fault("") == nil)
    #expect(fault("{\"to\":\"\(token)\",\"time_to_live\":-1}") != nil)
    #expect(fault("{\"data\":{}}") != nil)
    #expect(
      fault("{\"to\":\"\(token)\",\"data\":{\"k\":\"" + String(repeating: "x", count: 5_000) + "\"}}") != nil)
    #expect(fault("nonsense") == "not a JSON object")
    #expect(fault("{\"to\":\"a\",\"data\":{}}")?.contains("Invalid token") == true)
    #expect(check.valid == 1 && check.invalid == 5)
    #expect(check.first == "{\"to\":\"\(token)\",\"data\":{\"k\":\"v\"}}")
  }

  @Test func listsHoldWhatFailedAndAreNotWrittenTwice() throws {
    let dead = try ScratchFile()
    let gone = try ScratchFile()
    let new = try ScratchFile()
    let message = Array("{\"to\":\"old-token\",\"message_id\":\"m\"}".utf8)
    for _ in 0..<2 {
      // As a job that is killed and run again.
      let lists = try BulkLists(deadLetters: dead.path, unregistered: gone.path, canonical: new.path)
      lists.note(
        BulkOutcome(
          messageID: "m",
          result: .failure(
            SendError(
              code: .nacked, messageID: "m", nackCode: "DEVICE_UNREGISTERED", detail: "gone", attempts: 1)
          )), line: 4, message: message)
      lists.note(
        BulkOutcome(
          messageID: "n", result: .success(Ack(messageID: "n", canonicalRegistrationID: "new-token"))),
        line: 5, message: message)
      lists.note(
        BulkOutcome(messageID: "o", result: .failure(SendError(code: .deadline, messageID: "o"))), line: 6,
        message: Array("{\"to\":\"/topics/x\"}".utf8))
      try lists.flush()
    }
    #expect(dead.lines.count == 2)
    let letter = try JSONValue(parsing: dead.lines[0])
    #expect(letter["line"]?.int == 5 && letter["error"]?.string == "DEVICE_UNREGISTERED")
    #expect(letter["message"]?["to"]?.string == "old-token")
    #expect(gone.lines == ["old-token"])
    #expect(new.lines == ["old-token,new-token"])
  }

  @Test func aHalfWrittenLineOfAKilledRunDoesNotSpoilTheNext() throws {
    let gone = try ScratchFile("half")
    let lists = try BulkLists(deadLetters: nil, unregistered: gone.path, canonical: nil)
    lists.note(
      BulkOutcome(messageID: "m", result: .failure(SendError(code: .nacked, nackCode: "BAD_REGISTRATION"))),
      line: 0, message: Array("{\"to\":\"t\"}".utf8))
    try lists.flush()
    #expect(gone.lines == ["half", "t"])
  }

  @Test func aReportHasTheOutcomesAndTheirCourse() throws {
    let tally = BulkTally()
    for index in 0..<100 {
      tally.count(
        BulkOutcome(
          messageID: "\(index)",
          result: index % 10 == 0
            ? .failure(SendError(code: .nacked, nackCode: "BAD_REGISTRATION"))
            : .success(Ack(messageID: "\(index)", latency: .milliseconds(index)))))
      if index % 20 == 0 { tally.tick() }
    }
    tally.countRefusedLine()
    let value = BulkReport.json(tally, lines: 101, skipped: 3)
    #expect(value["messages"]?.int == 101)
    #expect(value["outcomes"]?["BAD_REGISTRATION"]?.int == 10)
    let text = BulkReport.text(tally, skipped: 3)
    #expect(text.contains("BAD_REGISTRATION") && text.contains("p99 "))
    let page = BulkReport.html(tally, name: "<people>.csv", skipped: 3)
    #expect(page.contains("&lt;people&gt;.csv") && page.contains("<svg"))
    #expect(page.contains("11 of 101 messages were not acked."))
    let progress = BulkReport.progress(tally, share: 0.5, from: 0)
    #expect(
      progress.contains("50 %") && progress.contains("left") && progress.contains("BAD_REGISTRATION 10"))
    #expect(!BulkReport.progress(tally, share: nil, from: 0).contains("%"))
  }

  @Test func theCourseOfALongJobIsBounded() {
    let tally = BulkTally()
    for _ in 0..<5_000 {
      tally.count(BulkOutcome(messageID: "m", result: .success(Ack(messageID: "m", latency: .seconds(1)))))
      tally.tick()
    }
    let (samples, seconds) = tally.course
    #expect(samples.count <= BulkTally.samplesMax + 1)
    #expect(seconds == 16)
    #expect(samples.reduce(0) { $0 + $1.acked } == 5_000)
    #expect(tally.latency.count == 5_000)
  }

  @Test func timesLeftAreForPeople() {
    #expect(BulkReport.duration(4.2) == "5 s")
    #expect(BulkReport.duration(125) == "2 min 5 s")
    #expect(BulkReport.duration(7_300) == "2 h 1 min")
  }
}
