import Foundation
import LoadGenerator
import StreamClient
import Synchronization
import Testing

@testable import WeirCommand

@Suite struct ArgumentsTests {
  private let flags = [Flag("port", "N", ""), Flag("data", "DIR", ""), Flag("json", nil, "")]

  private func read(
    _ words: [String], environment: [String: String] = [:], file: SettingsFile = SettingsFile()
  ) throws -> Arguments {
    try Arguments(words, flags: flags, positionalMax: 1, environment: environment, file: file)
  }

  private func message(_ body: () throws -> Void) -> String? {
    do { try body() } catch let fault as UsageFault { return fault.message } catch {}
    return nil
  }

  @Test func valuesComeBehindTheFlagOrAnEqualSign() throws {
    #expect(try read(["--port", "1"]).text("port") == "1")
    #expect(try read(["--port=1"]).text("port") == "1")
    #expect(try read(["--data", "a", "--data", "b"]).all("data") == ["a", "b"])
    #expect(try read(["--json"]).has("json"))
    #expect(try read(["-"]).positional == ["-"])
    #expect(try read(["--", "--port"]).positional == ["--port"])
  }

  @Test func whatIsNotKnownIsRefusedWithASuggestion() {
    #expect(message { _ = try read(["--prot", "1"]) } == "Unknown flag --prot. Did you mean --port?")
    #expect(message { _ = try read(["--elsewhere"]) } == "Unknown flag --elsewhere.")
    #expect(message { _ = try read(["--port"]) } == "--port needs a value.")
    #expect(message { _ = try read(["--json=1"]) } == "--json takes no value.")
    #expect(message { _ = try read(["a", "b"]) } == "Unexpected argument \"b\".")
  }

  @Test func aNumberIsCheckedAgainstItsRange() throws {
    let arguments = try read(["--port", "70000"])
    #expect(
      message { _ = try arguments.number("port", default: 0, in: 0...65_535) }
        == "--port must be a number from 0 to 65535, not \"70000\".")
    #expect(try read([]).number("port", default: 7, in: 0...65_535) == 7)
  }

  @Test func theCommandLineWinsOverTheEnvironmentAndThatOverTheFile() throws {
    let text = "{ // a comment\n \"port\": 3, \"json\": true, }"
    let file = try SettingsFile(data: Data(text.utf8), name: "weir.json")
    #expect(try read([], file: file).text("port") == "3")
    #expect(try read([], file: file).has("json"))
    #expect(try read([], environment: ["WEIR_PORT": "2"], file: file).text("port") == "2")
    #expect(try read(["--port", "1"], environment: ["WEIR_PORT": "2"], file: file).text("port") == "1")
  }

  @Test func namesInTheFileMayHaveUnderscores() throws {
    let file = try SettingsFile(data: Data("{\"xmpp_port\": 1}".utf8), name: "weir.json")
    #expect(file.values == ["xmpp-port": "1"])
  }

  @Test func aFileThatIsNoObjectOfPlainValuesIsRefusedByName() {
    let said = message { _ = try SettingsFile(data: Data("{\"port\": [1]}".utf8), name: "weir.json") }
    #expect(said?.hasPrefix("weir.json must hold one object") == true)
  }

  @Test func anAddressHasAHostAndAPort() throws {
    #expect(try Endpoint("example.org", defaultPort: 5235, flag: "server").port == 5235)
    #expect(try Endpoint("example.org:1", defaultPort: 5235, flag: "server").port == 1)
    #expect(try Endpoint("[::1]:9", defaultPort: 5235, flag: "server").host == "::1")
    #expect(
      message { _ = try Endpoint("a:b", defaultPort: 1, flag: "server") }
        == "--server must be HOST:PORT, not \"a:b\".")
  }
}

@Suite struct HelpTests {
  /// The words of an example up to the first pipe, redirection or second command; single quotes are understood.
  private func words(_ example: String) -> [String] {
    var words: [String] = []
    var word = ""
    var isQuoted = false
    for character in example {
      if character == "'" {
        isQuoted.toggle()
      } else if !isQuoted, character == " " {
        if !word.isEmpty { words.append(word) }
        word = ""
      } else {
        word.append(character)
      }
    }
    if !word.isEmpty { words.append(word) }
    return Array(words.prefix { !["|", ">", "&&"].contains($0) })
  }

  @Test func everyExampleIsACommandLineThatIsTaken() throws {
    for command in WeirProgram.commands {
      #expect(!command.examples.isEmpty, "\(command.name) has no example")
      for example in command.examples {
        let words = words(example)
        #expect(example.contains("weir \(command.name)"), "\(example)")
        guard words.first == "weir", words.dropFirst().first == command.name else { continue }
        let arguments = try Arguments(
          Array(words.dropFirst(2)), flags: command.flags + CommonFlags.all,
          positionalMax: command.positionalMax, environment: [:])
        _ = try command.init(arguments)
      }
    }
  }

  /// Fenced blocks of a document in that language, as their lines.
  private func blocks(_ path: String, language: String) throws -> [[String]] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    let parts = text.components(separatedBy: "```")
    return parts.indices.filter { $0 % 2 == 1 }.map { parts[$0].components(separatedBy: "\n") }
      .filter { $0.first == language }.map { Array($0.dropFirst()) }
  }

  @Test(arguments: ["docs/operating/load.md", "docs/operating/bulk.md"])
  func everyCommandInTheDocumentsIsTaken(path: String) throws {
    var count = 0
    for line in try blocks(path, language: "").flatMap(\.self) where line.hasPrefix("weir ") {
      let words = words(line)
      let command = try #require(WeirProgram.commands.first { $0.name == words[1] }, "\(line)")
      let arguments = try Arguments(
        Array(words.dropFirst(2)), flags: command.flags + CommonFlags.all,
        positionalMax: command.positionalMax, environment: [:])
      _ = try command.init(arguments)
      count += 1
    }
    #expect(count >= 5)
  }

  @Test func theScenarioInTheDocumentsIsOne() throws {
    let scenarios = try blocks("docs/operating/load.md", language: "json5")
    #expect(scenarios.count == 1)
    for lines in scenarios {
      let scenario = try LoadScenario(json5: Data(lines.joined(separator: "\n").utf8), name: "docs")
      #expect(scenario.devices.count == 2_000 && scenario.topics.subscribers == 200)
    }
  }

  @Test func helpNamesEveryFlagAndTheExitCodes() {
    for command in WeirProgram.commands {
      let text = Help.text(of: command)
      for flag in command.flags { #expect(text.contains("--\(flag.name)"), "\(command.name) \(flag.name)") }
    }
    #expect(Help.overview(WeirProgram.commands).contains("Exit codes: 0 done"))
  }

  @Test func wrongUsageExitsWithTwo() async {
    #expect(await WeirProgram.run(["nonsense"], environment: [:]) == 2)
    #expect(await WeirProgram.run(["serve", "--nonsense"], environment: [:]) == 2)
    #expect(await WeirProgram.run(["send", "--title", "x"], environment: [:]) == 2)
    #expect(await WeirProgram.run(["version"], environment: [:]) == 0)
  }

  @Test func withoutAServerTheExitCodeIsThree() async {
    let words = ["send", "--to", "x", "--server", "127.0.0.1:1", "--credentials", "/nonexistent"]
    #expect(await WeirProgram.run(words, environment: [:]) == 3)
  }
}

@Suite struct TableTests {
  @Test func wideCharactersTakeTwoColumns() {
    #expect(Table.width("민지") == 4)
    #expect(Table.width("🎉") == 2)
    #expect(Table.width("abc") == 3)
  }

  @Test func numbersAreSetRight() {
    #expect(
      Table.text([["what", "n"], ["a", "1"], ["b", "20"]]) == "what   n\n────  ──\na      1\nb     20")
  }
}

@Suite struct BulkPartsTests {
  private func path() -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent("weir-\(UUID().uuidString)").path
  }

  @Test func aCheckpointRemembersWhatIsFinishedAboveTheMark() throws {
    let path = path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let first = try BulkCheckpoint(path: path)
    for line in [0, 1, 3, 5] { first.mark(line) }
    try first.save()
    let second = try BulkCheckpoint(path: path)
    #expect((0..<7).map { second.has($0) } == [true, true, false, true, false, true, false])
    second.mark(2)
    second.mark(4)
    #expect(second.finishedCount == 6)
  }

  @Test func linesAreReadWholeWhateverTheirLength() throws {
    let path = path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let long = String(repeating: "x", count: 600_000)
    try "a\n\(long)\n\nlast".write(toFile: path, atomically: true, encoding: .utf8)
    var reader = try LineReader(path: path)
    var lines: [Int] = []
    while let line = reader.next() { lines.append(line.count) }
    #expect(lines == [1, 600_000, 0, 4])
  }

  @Test func aLineThatIsNoMessageIsToldAndFinished() async throws {
    let path = path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try "no JSON\n[]\n{\"message_id\":7}\n{}\n".write(toFile: path, atomically: true, encoding: .utf8)
    let refused = Mutex<[Int]>([])
    let finished = try BulkCheckpoint(path: nil)
    let input = try BulkInput(path: path, template: nil)
    var iterator = LineSource(input, job: "job", finished: finished) { line, _, _ in
      refused.withLock { $0.append(line) }
    }.makeAsyncIterator()
    #expect(await iterator.next()?.id == "job-3")
    #expect(await iterator.next() == nil)
    #expect(refused.withLock { $0 } == [0, 1, 2])
    #expect(finished.finishedCount == 3)
  }

  @Test func aLineWithoutAnIDHasTheSameOneOnEveryRun() async throws {
    let path = path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try "{\"to\":\"a\"}\n{\"to\":\"b\",\"message_id\":\"own\"}\n".write(
      toFile: path, atomically: true, encoding: .utf8)
    func ids() async throws -> [String?] {
      var iterator = LineSource(
        try BulkInput(path: path, template: nil), job: "job", finished: try BulkCheckpoint(path: nil),
        refused: { _, _, _ in }
      ).makeAsyncIterator()
      var ids: [String?] = []
      while let message = await iterator.next() { ids.append(message.id) }
      return ids
    }
    #expect(try await ids() == ["job-0", "own"])
    #expect(try await ids() == ["job-0", "own"])
  }
}
