import Bytes
import Foundation
import PushModel
import Seams
import StoreSQLite
import Stores
import Testing

/// Kills a process that writes, and looks for what it had said was durable.
@Suite struct CrashTests {
  /// What the killed processes said.
  private struct Ledger {
    /// Number to device.
    var durable: [UInt64: Int64] = [:]
    var batches: [UInt64: UInt64] = [:]
    /// May be gone.
    var settling: Set<UInt64> = []
    var lastBatch: UInt64 = 0

    mutating func read(_ line: Substring) -> Bool {
      let words = line.split(separator: " ")
      let numbers = words.dropFirst().compactMap { UInt64($0) }
      switch (words.first, numbers.count) {
      case ("S", 3):
        batches[numbers[0]] = numbers[1]
        lastBatch = max(lastBatch, numbers[0])
        for index in 0..<numbers[1] { durable[numbers[0] * 16 + index] = Int64(numbers[2]) }
        return true
      case ("T", 1):
        settling.insert(numbers[0])
        return true
      default:
        return false
      }
    }
  }

  @Test func nothingThatWasAnsweredIsLostByAKill() async throws {
    let scratch = try Scratch()
    var ledger = Ledger()
    var chance = SystemRandomNumberGenerator()
    for round in 0..<10 {
      let linesMax = Int.random(in: 20...1_500, using: &chance)
      try runAndKill(scratch.path, first: ledger.lastBatch + 1_000_000, linesMax, &ledger)
      try await check(scratch.path, ledger, round: round)
    }
    #expect(ledger.batches.count > 100)
  }

  private func runAndKill(
    _ directory: String, first: UInt64, _ linesMax: Int, _ ledger: inout Ledger
  ) throws {
    let process = Process()
    process.executableURL = try Self.crasher()
    process.arguments = [directory, String(first)]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    var text = Data()
    var lines = 0
    while lines < linesMax {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      lines += more.count { $0 == UInt8(ascii: "\n") }
      text += more
    }
    kill(process.processIdentifier, SIGKILL)
    // What it said before it died counts too.
    text += output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
      let understood = ledger.read(line)
      #expect(understood, "\(line)")
    }
    #expect(lines >= linesMax)
  }

  private func check(_ directory: String, _ ledger: Ledger, round: Int) async throws {
    let store = try SQLiteStore(directory: directory)
    let now = SystemTime().wall
    var found: [UInt64: Int64] = [:]
    for index in 0..<4 {
      let credentials = try await store.credentials(of: "crash-\(index)")
      let device = try #require(credentials).number
      var after: MessageNumber?
      while true {
        let page = try await store.backlog(of: device, after: after, max: 5_000, now: now)
        for row in page.messages {
          #expect(row.body.count == Int(row.number.value % 1_500), "a torn body")
          found[row.number.value] = device.value
        }
        after = page.messages.last?.number
        if !page.hasMore { break }
      }
    }
    let lost = ledger.durable.filter { !ledger.settling.contains($0.key) && found[$0.key] != $0.value }
    #expect(lost.isEmpty, "round \(round): lost \(lost.count) of \(ledger.durable.count)")

    // A batch is there as a whole or not at all, journal too.
    let journal = try await store.journal(since: WallTime(ms: 0), max: .max)
    let journaled = Dictionary(grouping: journal, by: { $0.key.hash.low / 16 })
    for (batch, numbers) in Dictionary(grouping: found.keys, by: { $0 / 16 }) {
      let wanted = batch % 8 + 1
      let settled = (0..<wanted).count { ledger.settling.contains(batch * 16 + $0) }
      #expect(numbers.count + settled >= Int(wanted), "batch \(batch) is torn")
      #expect(journaled[batch]?.count == Int(wanted), "the journal of batch \(batch)")
    }
    await store.close()
  }

  /// The helper beside the test bundle.
  static func crasher() throws -> URL {
    let places = CommandLine.arguments.filter { $0.hasSuffix(".xctest") } + [CommandLine.arguments[0]]
    let found = places.map { URL(fileURLWithPath: $0).deletingLastPathComponent() }
      .map { $0.appendingPathComponent("store-crasher") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    return try #require(found)
  }
}
