import DeviceRuntime
import Foundation
import Glibc
import JSONCore
import Seams
import Synchronization
import TestKit

/// One `weir bulk` job from a file, during which server and sender are killed with SIGKILL in turns.
///
/// The devices are real device runtimes with their default memory. At the end each line of the file must have been
/// shown exactly once, and the last report must account for all of them.
struct BulkJob {
  let messages: Int
  let devices: Int
  let serverKills: Int
  let senderKills: Int
  let seed: UInt64
  /// Messages a second at most; nil is as fast as it goes.
  let rate: Int?

  /// What was shown, a byte a line.
  final class Shown: Sendable {
    private let state: Mutex<(counts: [UInt8], once: Int)>
    init(_ count: Int) { state = Mutex((Array(repeating: 0, count: count), 0)) }

    func note(_ number: Int) {
      state.withLock { state in
        guard state.counts.indices.contains(number) else { return }
        if state.counts[number] == 0 { state.once += 1 }
        if state.counts[number] < 255 { state.counts[number] += 1 }
      }
    }

    /// Lines that were shown at least once.
    var once: Int { state.withLock { $0.once } }
    var doubled: Int { state.withLock { $0.counts.count { $0 > 1 } } }
    var missing: [Int] { state.withLock { state in state.counts.indices.filter { state.counts[$0] == 0 } } }
  }

  private enum Victim: String { case server, sender }

  /// - Returns: Whether all was as promised.
  func perform() async throws -> Bool {
    let server = try await ServerProcess.start(
      flags: ["--limit", "stored-per-device=1000000"], executable: KillRun.weir)
    let address = server.address
    let registrar = try DeviceRegistrar(
      port: address.https, project: address.projectID, apiKey: try address.secret("api-key"),
      trust: .file(address.certificateAuthority))
    var credentials: [Device.Credentials] = []
    for _ in 0..<devices { credentials.append(try await registrar.register(app: "org.example.app")) }
    let shown = Shown(messages)
    let phones = try Phones(note: { shown.note($0) }, addresses: [address], rememberedMax: 1_000)
    try await phones.connect(credentials)
    let directory = try TemporaryDirectory()
    let words = try job(credentials, address, directory)

    let begun = ContinuousClock.now
    var plan = kills()
    print("kills at: " + plan.map { "\($0.victim.rawValue) after \($0.at)" }.joined(separator: ", "))
    var sender = try ChildProcess(KillRun.weir, words, errors: directory.path + "/errors")
    let deadline = begun + .seconds(120 + messages / 500)
    var told = begun
    while sender.output.current.exitCode == nil {
      guard ContinuousClock.now < deadline else {
        sender.signal(SIGKILL)
        throw BulkJobFailure("the job did not end in time; \(shown.once) of \(messages) were shown")
      }
      // The command is ahead of the devices on a busy machine.
      let progress = max(shown.once, Self.finished(directory.path + "/checkpoint"))
      if let next = plan.first, progress >= next.at {
        plan.removeFirst()
        print("killing the \(next.victim.rawValue) after \(progress) messages")
        switch next.victim {
        case .server:
          try await server.kill()
          try await server.restart()
        case .sender:
          sender.signal(SIGKILL)
          _ = try await sender.waitForExit(within: .seconds(20))
          sender = try ChildProcess(KillRun.weir, words, errors: directory.path + "/errors")
        }
      }
      if ContinuousClock.now - told > .seconds(10) {
        told = ContinuousClock.now
        print("\(shown.once) of \(messages) shown")
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    let took = ContinuousClock.now - begun
    // What is acked may still be on its way, and so may a double.
    let quiet = ContinuousClock.now + .seconds(30)
    while shown.once < messages, ContinuousClock.now < quiet { try await Task.sleep(for: .milliseconds(50)) }
    try await Task.sleep(for: .seconds(1))
    let hidden = await phones.stop()
    _ = try await server.terminate(within: .seconds(60))
    return judge(sender, shown, hidden: hidden, took: took, pending: plan.count, directory)
  }

  /// Writes the job's file.
  ///
  /// - Returns: The command line that sends it.
  private func job(
    _ credentials: [Device.Credentials], _ address: ServerAddress, _ directory: TemporaryDirectory
  ) throws -> [String] {
    let file = directory.path + "/messages.csv"
    var text = "token,n\n"
    for number in 0..<messages { text += "\(credentials[number % credentials.count].token),\(number)\n" }
    try text.write(toFile: file, atomically: false, encoding: .utf8)
    let filler = String(repeating: "the quick brown fox ", count: 20)
    let template = "{\"to\":\"{{token}}\",\"data\":{\"n\":\"{{n}}\",\"text\":\"\(filler)\"}}"
    return [
      "bulk", file, "--template", template, "--json", "--connections", "4", "--window", "250", "--checkpoint",
      directory.path + "/checkpoint", "--dead-letter", directory.path + "/dead", "--report",
      directory.path + "/report.json", "--server", "localhost:\(address.xmpp)", "--credentials",
      address.credentials,
    ] + (rate.map { ["--rate", "\($0)"] } ?? [])
  }

  /// Lines that the checkpoint calls finished, without those that have gaps before them.
  private static func finished(_ checkpoint: String) -> Int {
    guard let text = try? String(contentsOfFile: checkpoint, encoding: .utf8) else { return 0 }
    let digits = text.prefix(64).drop { !$0.isNumber }.prefix { $0.isNumber }
    return Int(digits) ?? 0
  }

  /// Victims in turns, spread over the job, each at a place of its own.
  private func kills() -> [(at: Int, victim: Victim)] {
    var chance = SeededChance(seed: seed)
    let victims: [Victim] =
      (0..<max(serverKills, senderKills)).flatMap { index in
        (index < serverKills ? [Victim.server] : []) + (index < senderKills ? [.sender] : [])
      }
    let stretch = messages / (victims.count + 1)
    return victims.enumerated().map { index, victim in
      (stretch * index + Int.random(in: stretch / 2...stretch, using: &chance), victim)
    }
  }

  private func judge(
    _ sender: ChildProcess, _ shown: Shown, hidden: Int, took: Duration, pending: Int,
    _ directory: TemporaryDirectory
  ) -> Bool {
    let report = (try? String(contentsOfFile: directory.path + "/report.json", encoding: .utf8)).flatMap {
      try? JSONValue(parsing: $0)
    }
    func count(_ name: String) -> Int { report?[name]?.int.map(Int.init) ?? -1 }
    let acked = report?["outcomes"]?["ack"]?.int.map(Int.init) ?? 0
    let dead = (try? String(contentsOfFile: directory.path + "/dead", encoding: .utf8)) ?? ""
    var faults: [String] = []
    if sender.output.current.exitCode != 0 {
      faults.append(
        "the job ended with \(sender.output.current.exitCode ?? -1): \(sender.errorText.suffix(500))")
    }
    let missing = shown.missing
    if !missing.isEmpty { faults.append("\(missing.count) lines were never shown: \(missing.prefix(5))") }
    if shown.doubled > 0 { faults.append("\(shown.doubled) lines were shown twice") }
    if !dead.isEmpty { faults.append("dead letters: \(dead.prefix(300))") }
    if pending > 0 { faults.append("\(pending) kills came too late to happen") }
    if count("messages") + count("skipped") != messages || acked != count("messages") {
      faults.append("the report does not add up: \(report?.text ?? "there is none")")
    }
    let seconds = Double(took.components.seconds) + Double(took.components.attoseconds) / 1e18
    print(
      "\(messages) messages in \(String(format: "%.1f", seconds)) s with \(serverKills) kills of the server and "
        + "\(senderKills) of the sender; shown once \(shown.once - shown.doubled), twice \(shown.doubled), "
        + "never \(missing.count); repeats hidden by devices \(hidden); last report: \(acked) acked, "
        + "\(count("skipped")) finished by earlier runs")
    for fault in faults { print("  \(fault)") }
    print(faults.isEmpty ? "the job is clean" : "the job is NOT clean")
    return faults.isEmpty
  }
}

struct BulkJobFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
