import ConnectionServer
import PushModel
import Seams
import Testing

@testable import Simulator

/// Weeks of a message's life, on the virtual clock.
@Suite struct LongTimeTests {
  /// A server over which weeks pass: it sweeps once an hour.
  private func world() -> Simulation {
    var swarm = Swarm.plain
    swarm.messages = 0
    let run = Simulation(seed: 1, swarm: swarm)
    run.server.houseEvery = .seconds(3_600)
    run.setUp(startingDevices: false)
    return run
  }

  private func send(_ run: Simulation, ttl: Int?) -> SentMessage {
    let sent = SentMessage(
      number: 0, id: "m-0", kind: .token, receivers: [0], ttl: ttl, collapse: nil, wantsReceipt: false,
      isDryRun: false, wrong: nil, at: run.world.now)
    run.ledger.add(sent)
    Workload.submit(sent, to: run.registrations[0].token, by: run.appServers[0], in: run)
    run.world.run(until: run.world.now + 5_000_000_000) { sent.isOver }
    // Nobody is connected while the weeks pass.
    run.appServers[0].close()
    run.world.run(until: run.world.now + 30_000_000_000) { run.appServers[0].isClosed }
    return sent
  }

  private func wait(_ run: Simulation, seconds: Int64) {
    run.world.run(until: run.world.now + seconds * 1_000_000_000)
  }

  @Test func aMessageWithoutATimeToLiveIsThereForFourWeeks() {
    let run = world()
    let sent = send(run, ttl: nil)
    #expect(sent.end == .acked)
    wait(run, seconds: 2_419_200 - 3_600)
    #expect(run.server.storedCount == 1)
    run.devices[0].start()
    wait(run, seconds: 60)
    #expect(sent.takenCount(0) == 1)
    #expect(run.server.core?.history(of: "m-0").last == .delivered)
    #expect(run.ledger.failures == [])
    run.dispose()
  }

  @Test func afterFourWeeksItIsExpiredAndGone() {
    let run = world()
    let sent = send(run, ttl: nil)
    #expect(sent.end == .acked)
    wait(run, seconds: 2_419_200 + 7_200)
    #expect(run.server.storedCount == 0)
    #expect(run.server.core?.history(of: "m-0").last == .expired)
    run.devices[0].start()
    wait(run, seconds: 60)
    #expect(sent.takenCount(0) == 0)
    run.dispose()
  }

  @Test func aMessageThatExpiredBeforeTheSweepIsNotDelivered() {
    let run = world()
    let sent = send(run, ttl: 600)
    wait(run, seconds: 601)
    run.devices[0].start()
    wait(run, seconds: 60)
    #expect(sent.takenCount(0) == 0)
    #expect(run.ledger.failures == [])
    run.dispose()
  }

  @Test func itIsDeliveredInItsLastSecond() {
    let run = world()
    let sent = send(run, ttl: 600)
    wait(run, seconds: 595 - (run.world.now - sent.at) / 1_000_000_000)
    run.devices[0].start()
    wait(run, seconds: 60)
    #expect(sent.takenCount(0) == 1)
    run.dispose()
  }
}
