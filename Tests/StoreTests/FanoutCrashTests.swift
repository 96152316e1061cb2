import Foundation
import PushModel
import Seams
import StoreSQLite
import Stores
import Testing

/// Kills a process that fans messages out, between its slices and within them.
@Suite struct FanoutCrashTests {
  @Test func everySubscriberGetsEachMessageExactlyOnceAcrossKills() async throws {
    let scratch = try Scratch()
    var begun: Set<UInt64> = []
    var matched: [UInt64: Int] = [:]
    for round in 0..<6 {
      for line in try runAndKill(
        scratch.path, first: UInt64(round + 1) * 1_000, lines: Int.random(in: 5...150))
      {
        let words = line.split(separator: " ")
        let numbers = words.dropFirst().compactMap { UInt64($0) }
        switch (words.first, numbers.count) {
        case ("B", 1): begun.insert(numbers[0])
        case ("A", 3): matched[numbers[0], default: 0] += Int(numbers[1])
        default: Issue.record("\(line)")
        }
      }
    }
    let store = try SQLiteStore(
      directory: scratch.path, options: .init(limits: StoreLimits(storedPerDeviceMax: 1_000_000)))
    let now = SystemTime().wall
    var open = try await store.fanouts(since: WallTime(ms: 0))
    #expect(begun.isSubset(of: Set(open.map(\.number.value))))
    for job in open { #expect(job.counts.matched >= matched[job.number.value] ?? 0) }
    let jobs = open.map(\.number)
    while !open.isEmpty {
      let numbers = open.filter { !$0.isDone }.map(\.number)
      if numbers.isEmpty { break }
      _ = try await store.advance(fanouts: numbers, max: 50, spares: [], now: now)
      open = try await store.fanouts(since: WallTime(ms: 0))
    }
    #expect(open.allSatisfy { $0.counts.matched == 200 })
    for index in 0..<200 {
      let found = try await store.credentials(of: "f-\(index)")
      let device = try #require(found).number
      let backlog = try await store.backlog(of: device, max: 100_000, now: now)
      #expect(backlog.messages.map(\.number) == jobs, "device \(index)")
    }
    #expect(!jobs.isEmpty)
    await store.close()
  }

  private func runAndKill(_ directory: String, first: UInt64, lines wanted: Int) throws -> [Substring] {
    let process = Process()
    process.executableURL = try CrashTests.crasher()
    process.arguments = [directory, String(first), "fanout"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    var text = Data()
    while text.count(where: { $0 == UInt8(ascii: "\n") }) < wanted {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      text += more
    }
    kill(process.processIdentifier, SIGKILL)
    text += output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: text, as: UTF8.self).split(separator: "\n").map { Substring(String($0)) }
  }
}
