import Foundation
import Testing

@testable import Simulator

@Suite struct SimulationTests {
  @Test(arguments: 1...20)
  func theSeedKeepsToTheContract(_ seed: Int) {
    let outcome = Simulator.run(seed: UInt64(seed), nodes: 1)
    #expect(outcome.failures == [], "\(outcome.summary)")
  }

  @Test(arguments: 1...8)
  func theSeedKeepsToTheContractWithThreeNodes(_ seed: Int) {
    let outcome = Simulator.run(seed: UInt64(seed), nodes: 3)
    #expect(outcome.failures == [], "\(outcome.summary)")
    #expect(outcome.nodes == 3)
  }

  @Test(arguments: RegressionSeeds.ofNodes)
  func aSeedOfNodesThatOnceFailedKeepsToTheContract(_ seed: RegressionSeeds.OfNodes) {
    let outcome = Simulator.run(seed: seed.seed, nodes: seed.nodes)
    #expect(outcome.failures == [], "\(outcome.summary)")
  }

  @Test(arguments: RegressionSeeds.all)
  func aSeedThatOnceFailedKeepsToTheContract(_ seed: UInt64) {
    let outcome = Simulator.run(seed: seed, nodes: 1)
    #expect(outcome.failures == [], "\(outcome.summary)")
  }

  @Test(arguments: Canary.allCases)
  func theCanaryIsCaught(_ canary: Canary) throws {
    // In processes of their own, where the order of hashing is fixed and a seed means the same each time.
    let run = try Program.simulate(["--once", "--canary", canary.rawValue, "--seeds", "1...40"])
    #expect(run.code == 0, "\(run.output)")
  }

  @Test func oneMessageWithoutFaultsArrivesOnce() {
    var swarm = Swarm.plain
    swarm.messages = 1
    let run = Simulation(seed: 7, swarm: swarm)
    let outcome = run.perform()
    #expect(outcome.failures == [])
    #expect(outcome.sent == 1)
    #expect(outcome.acked == 1)
    #expect(outcome.taken == 1)
  }

  @Test(arguments: ["1", "4"])
  func twoProcessesGiveOneHash(_ nodes: String) throws {
    let first = try Program.simulate(["--nodes", nodes, "--seeds", "3...6", "--json"])
    let second = try Program.simulate(["--nodes", nodes, "--seeds", "3...6", "--json"])
    #expect(first.code == 0, "\(first.output)")
    let hashes = [first, second].map { run in
      run.output.split(separator: "\n").compactMap { line in
        line.range(of: "\"hash\":\"").map { line[$0.upperBound...].prefix { $0 != "\"" } }
      }.sorted()
    }
    #expect(hashes[0].count == 4)
    #expect(hashes[0] == hashes[1])
    #expect(Set(hashes[0]).count == 4)
  }

  @Test func aFailingSeedIsShownWithTheWayToReplayIt() throws {
    let run = try Program.simulate(["--canary", "store-forgets", "--seeds", "1...40"])
    #expect(run.code == 0, "\(run.output)")
    #expect(run.output.contains("was caught"))
    #expect(run.output.contains("replay: simulate --seed"))
    #expect(run.output.contains("LOST"))
  }

  @Test func wrongUsageIsSaidSo() throws {
    #expect(try Program.simulate(["--seeds", "9...1"]).code == 2)
    #expect(try Program.simulate(["--canary", "parrot"]).code == 2)
    #expect(try Program.simulate(["--nodes", "0"]).code == 2)
    #expect(try Program.simulate(["--nodes", "9"]).code == 2)
    #expect(try Program.simulate(["--help"]).output.contains("examples:"))
  }
}
