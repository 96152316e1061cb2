import Foundation
import JSONCore
import TestKit
import Testing

/// `weir bulk` as real jobs use it, against a live server.
@Suite struct BulkTests {
  private func bulk(
    _ words: [String], _ address: ServerAddress, errors: TemporaryDirectory
  ) throws -> ChildProcess {
    try ChildProcess(
      try ServerProcess.findExecutable(),
      ["bulk"] + words + [
        "--json", "--server", "localhost:\(address.xmpp)", "--credentials", address.credentials,
      ], errors: errors.path + "/errors")
  }

  private func lines(_ text: String) -> [JSONValue] {
    text.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) }
  }

  private func lines(of path: String) -> [String] {
    ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
  }

  /// A process that shows what the devices receive.
  private func devices(_ devices: [TestDevice], _ address: ServerAddress, in directory: TemporaryDirectory)
    throws -> ChildProcess
  {
    let file = directory.path + "/devices.ndjson"
    try devices.map {
      let value: JSONValue = [
        "token": .string($0.token), "device_id": .string($0.id), "device_secret": .string($0.secret),
      ]
      return value.text
    }.joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
    return try ChildProcess(
      try ServerProcess.findExecutable(),
      [
        "device", "--from", file, "--json", "--server", "localhost:\(address.xmpp)", "--credentials",
        address.credentials,
      ], errors: directory.path + "/device-errors")
  }

  private func numbers(_ text: String) -> [String] {
    lines(text).compactMap { $0["kind"]?.string == "message" ? $0["data"]?["n"]?.string : nil }
  }

  @Test func aKilledJobGoesOnSendsNothingTwiceAndSkipsNothing() async throws {
    try await TestServer.run { address in
      let directory = try TemporaryDirectory()
      var all: [TestDevice] = []
      for _ in 0..<3 { all.append(try await address.registerDevice()) }
      let receiver = try devices(all, address, in: directory)
      let count = 900
      let file = directory.path + "/messages.csv"
      let rows = (0..<count).map { "\(all[$0 % 3].token),\($0)" }
      try (["token,n"] + rows).joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
      let checkpoint = directory.path + "/checkpoint"
      let words = [
        file, "--template", "{\"to\":\"{{token}}\",\"data\":{\"n\":\"{{n}}\"}}", "--checkpoint", checkpoint,
        "--connections", "2",
      ]
      var skipped: Int64 = 0
      // Killed twice at work; the third run ends.
      for _ in 0..<2 {
        let before = numbers(receiver.output.current.text).count
        let child = try bulk(words + ["--rate", "300"], address, errors: directory)
        _ = try await receiver.output.wait(for: "some deliveries", within: .seconds(60)) { output in
          numbers(output.text).count >= before + 200 ? true : nil
        }
        child.signal(SIGKILL)
        _ = try await child.waitForExit(within: .seconds(20))
      }
      let last = try bulk(words, address, errors: directory)
      #expect(try await last.waitForExit(within: .seconds(60)).code == 0, "\(last.errorText)")
      let report = try #require(lines(last.output.current.text).last)
      skipped = report["skipped"]?.int ?? 0
      #expect(skipped > 100)
      #expect((report["messages"]?.int ?? 0) + skipped == Int64(count))
      _ = try await receiver.output.wait(for: "all deliveries", within: .seconds(30)) { output in
        Set(numbers(output.text)).count == count ? true : nil
      }
      let seen = numbers(receiver.output.current.text)
      #expect(seen.count == count)
      #expect(Set(seen) == Set((0..<count).map { String($0) }))
      receiver.signal(SIGTERM)
      _ = try await receiver.waitForExit(within: .seconds(20))
    }
  }

  @Test func whatFailsIsListedForTheNextJob() async throws {
    try await TestServer.run { address in
      let directory = try TemporaryDirectory()
      let good = try await address.registerDevice()
      let gone = try await address.registerDevice()
      try await address.unregister(gone)
      let old = try await address.registerDevice()
      let new = try await address.registerDevice(on: old, replacing: old.token)
      let file = directory.path + "/messages.ndjson"
      let texts = [
        "{\"to\":\"\(good.token)\",\"data\":{\"n\":\"0\"}}", "{\"to\":\"\(gone.token)\"}", "no JSON",
        "{\"to\":\"\(old.token)\"}",
      ]
      try texts.joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
      let (dead, unregistered, canonical) = (
        directory.path + "/dead", directory.path + "/gone", directory.path + "/new"
      )
      let html = directory.path + "/report.html"
      let child = try bulk(
        [
          file, "--dead-letter", dead, "--unregistered", unregistered, "--canonical", canonical, "--report",
          html, "--ordered",
        ], address, errors: directory)
      #expect(try await child.waitForExit(within: .seconds(60)).code == 1, "\(child.errorText)")
      let letters = lines(of: dead).compactMap { try? JSONValue(parsing: $0) }
      #expect(Set(letters.compactMap { $0["line"]?.int }) == [2, 3])
      #expect(letters.contains { $0["message"]?["to"]?.string == gone.token })
      #expect(lines(of: unregistered) == [gone.token])
      #expect(lines(of: canonical) == ["\(old.token),\(new.token)"])
      #expect(try String(contentsOfFile: html, encoding: .utf8).contains("2 of 4 messages were not acked."))
    }
  }

  @Test func aDryRunNeedsNoServer() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/people.csv"
    let token = String(repeating: "d", count: 22) + ":APA91b" + String(repeating: "t", count: 43)
    try "token,name\n\(token),Ann\nt-2\n".write(toFile: file, atomically: true, encoding: .utf8)
    let child = try ChildProcess(
      try ServerProcess.findExecutable(),
      [
        "bulk", file, "--template", "{\"to\":\"{{token}}\",\"data\":{\"name\":\"{{name}}\"}}", "--dry-run",
        "--json",
      ], errors: directory.path + "/errors")
    #expect(try await child.waitForExit(within: .seconds(30)).code == 1)
    let last = lines(child.output.current.text).last
    #expect(last?["valid"]?.int == 1 && last?["invalid"]?.int == 1)
    #expect(last?["first"]?.string == "{\"to\":\"\(token)\",\"data\":{\"name\":\"Ann\"}}")
  }

  @Test func theRateIsKept() async throws {
    try await TestServer.run { address in
      let directory = try TemporaryDirectory()
      let device = try await address.registerDevice()
      let file = directory.path + "/messages.ndjson"
      try String(repeating: "{\"to\":\"\(device.token)\",\"time_to_live\":0}\n", count: 100).write(
        toFile: file, atomically: true, encoding: .utf8)
      let child = try bulk([file, "--rate", "50"], address, errors: directory)
      #expect(try await child.waitForExit(within: .seconds(60)).code == 0, "\(child.errorText)")
      let report = try #require(lines(child.output.current.text).last)
      #expect((report["seconds"]?.double ?? 0) >= 1.9)
      #expect(report["outcomes"]?["ack"]?.int == 100)
    }
  }
}
