import CLinux
import Connections
import DeliveryCore
import DeviceRuntime
import EventLoops
import Foundation
import Glibc
import PushModel
import Seams
import StreamClient
import TestKit

/// Kills the server with SIGKILL at random points under load and looks for lost and doubled messages.
///
/// `kill-run [--runs N] [--rate N] [--devices N] [--seed N]`: for each run the client library sends at the given
/// rate over two streams, devices ack, the server is killed once or more and restarted on its data, everybody
/// reconnects; at the end the ledger of both ends is compared. Exit code 1 when a message that was acked is
/// missing, or an app was shown one twice.
///
/// `kill-run --cluster [--kinds node,primary,both,…] [--served-within S]`: the same with three nodes on three databases, see
/// ``ClusterRun``. A run also fails when not all devices have service within so many seconds of a kill (25), or those of
/// a node that was killed alone have no stream within a fifth of that.
///
/// `kill-run --bulk N [--server-kills N] [--sender-kills N]` runs a job of `weir bulk` with that many messages
/// instead, and kills the server and the command itself in turns (``BulkJob``).
///
/// `kill-run --migrate N` kills nothing: it moves a store with that many messages to PostgreSQL (``MigrationRun``).
@main
struct KillRun {
  /// The command under test.
  static let weir = ".build/release/weir"

  static func main() async {
    shim_line_buffer_stdout()
    var runs = 20
    var rate = 6_000
    var bulkRate: Int?
    var devices = 100
    var seed = UInt64.random(in: 1...9_999)
    var kinds: [ClusterRun.Kind] = [.node, .primary, .both]
    var (bulk, serverKills, senderKills) = (0, 3, 2)
    var migrated = 0
    var servedWithin = 25
    var words = CommandLine.arguments.dropFirst()
    let isCluster = words.first == "--cluster"
    if isCluster {
      words.removeFirst()
      (rate, devices) = (5_000, 300)
    }
    while let word = words.popFirst() {
      guard let text = words.popFirst() else {
        print("kill-run: \(word) takes a value; see the head of Benchmarks/Kill/KillRun.swift")
        exit(2)
      }
      switch (word, Int(text)) {
      case ("--kinds", _) where isCluster:
        kinds = text.split(separator: ",").compactMap { .init(rawValue: String($0)) }
        guard !kinds.isEmpty else {
          print("kill-run: the kinds are", ClusterRun.Kind.allCases.map(\.rawValue).joined(separator: ", "))
          exit(2)
        }
      case ("--runs", let value?): runs = value
      case ("--rate", let value?): (rate, bulkRate) = (value, value)
      case ("--devices", let value?): devices = value
      case ("--bulk", let value?): bulk = value
      case ("--server-kills", let value?): serverKills = value
      case ("--sender-kills", let value?): senderKills = value
      case ("--migrate", let value?): migrated = value
      case ("--served-within", let value?) where isCluster: servedWithin = value
      case ("--seed", let value?): seed = UInt64(value)
      default:
        print("kill-run: \(word) \(text) is no argument")
        exit(2)
      }
    }
    print("seed \(seed)")
    if bulk > 0 {
      let job = BulkJob(
        messages: bulk, devices: devices, serverKills: serverKills, senderKills: senderKills, seed: seed,
        rate: bulkRate)
      do { exit(try await job.perform() ? 0 : 1) } catch {
        print("kill-run: \(error)")
        exit(1)
      }
    }
    if migrated > 0 {
      do { exit(try await MigrationRun(messages: migrated, devices: devices).perform() ? 0 : 1) } catch {
        print("kill-run: \(error)")
        exit(1)
      }
    }
    var chance = SeededChance(seed: seed)
    var bad = 0
    if isCluster {
      do {
        bad = try await overCluster(
          runs, kinds, rate: rate, devices: devices, servedWithin: .seconds(servedWithin), &chance)
      } catch {
        print("FAILED: \(error)")
        bad = runs
      }
      end(runs, bad)
    }
    for run in 1...runs {
      do {
        let (ledger, figures) = try await Run(
          devices: devices, rate: rate, kills: Int.random(in: 1...3, using: &chance),
          seed: chance.next()
        ).perform()
        let verdict = ledger.isClean ? "clean" : "BAD"
        if !ledger.isClean { bad += 1 }
        print(
          "run \(run): \(verdict): sent \(ledger.sent) at \(figures.rate)/s, kills \(figures.kills), acked \(ledger.acked.count), "
            + "acked and lost \(ledger.lost.count), shown twice \(ledger.doubled.count), "
            + "repeats hidden by devices \(ledger.hidden), failed \(ledger.failed.count), open \(ledger.open)"
        )
        for (number, why) in ledger.failed.prefix(3) { print("  message \(number): \(why)") }
      } catch {
        bad += 1
        print("run \(run): FAILED: \(error)")
      }
    }
    end(runs, bad)
  }

  private static func end(_ runs: Int, _ bad: Int) -> Never {
    print(bad == 0 ? "all \(runs) runs are clean" : "\(bad) of \(runs) runs are not clean")
    exit(bad == 0 ? 0 : 1)
  }

  /// - Returns: How many runs were not clean.
  private static func overCluster(
    _ runs: Int, _ kinds: [ClusterRun.Kind], rate: Int, devices: Int, servedWithin: Duration,
    _ chance: inout SeededChance
  ) async throws -> Int {
    let cluster = try await ClusterRun.start(devices: devices, rate: rate)
    var bad = 0
    for run in 1...runs {
      let kind = kinds[(run - 1) % kinds.count]
      let (ledger, figures) = try await cluster.perform(kind, run: run, &chance)
      let isLate =
        (figures.served ?? .seconds(1_000)) > servedWithin
        || (kind == .node && (figures.devicesBack ?? .seconds(1_000)) > servedWithin / 5)
      let isGood = ledger.isClean && !isLate
      if !isGood { bad += 1 }
      print(
        "run \(run), \(kind.rawValue): \(isGood ? "clean" : ledger.isClean ? "LATE" : "BAD"): "
          + "sent \(ledger.sent), \(figures.rate)/s before, acked \(ledger.acked.count), "
          + "acked and lost \(ledger.lost.count), shown twice \(ledger.doubled.count), "
          + "repeats hidden by devices \(ledger.hidden), failed \(ledger.failed.count), open \(ledger.open); "
          + "streams back after \(figures.devicesBack?.tenths ?? "-") s, "
          + "all devices served after \(figures.served?.tenths ?? "?") s")
      for (number, why) in ledger.failed.prefix(3) { print("  message \(number): \(why)") }
    }
    try await cluster.stop()
    return bad
  }
}
