import LoadGenerator
import Testing

@Suite struct ArrivalTests {
  private func counts(_ arrivals: Arrivals, seconds: Int = 4, seed: UInt64 = 1) -> [Int] {
    var clock = ArrivalClock(arrivals, duration: .seconds(seconds), seed: seed)
    return (0..<seconds).map { _ in (0..<1_000).reduce(0) { sum, _ in sum + clock.step() } }
  }

  @Test func aConstantRateGivesItsNumberEverySecondAndSpreadsIt() {
    for count in counts(.constant(2_500)) { #expect(abs(count - 2_500) <= 1) }
    var clock = ArrivalClock(.constant(100), duration: .seconds(1), seed: 1)
    let each = (0..<1_000).map { _ in clock.step() }
    #expect(each.allSatisfy { $0 <= 1 })
  }

  @Test func aPoissonProcessHasItsMeanAndIsUneven() {
    let counts = counts(.poisson(1_000), seconds: 40)
    let mean = Double(counts.reduce(0, +)) / 40
    #expect(abs(mean - 1_000) < 30)
    let variance = counts.reduce(0) { $0 + (Double($1) - mean) * (Double($1) - mean) } / 40
    #expect(variance > 300 && variance < 3_000)
  }

  @Test func theSameSeedGivesTheSameArrivals() {
    #expect(counts(.poisson(500), seed: 7) == counts(.poisson(500), seed: 7))
    #expect(counts(.poisson(500), seed: 7) != counts(.poisson(500), seed: 8))
  }

  @Test func aRampRisesOverTheDuration() {
    let counts = counts(.ramp(from: 0, to: 4_000))
    #expect(counts.map { ($0 + 250) / 500 } == [1, 3, 5, 7])
  }

  @Test func aSpikeIsAsLongAsItSays() {
    #expect(
      counts(.spike(base: 100, peak: 900, at: 1, length: 2)).map { ($0 + 50) / 100 } == [1, 9, 9, 1])
  }

  @Test func nothingIsDueAfterTheDurationOrInAClosedLoop() {
    var clock = ArrivalClock(.constant(1_000), duration: .seconds(1), seed: 1)
    for _ in 0..<1_000 { _ = clock.step() }
    #expect(clock.step() == 0)
    #expect(counts(.closed) == [0, 0, 0, 0])
    #expect(counts(.poisson(0)) == [0, 0, 0, 0])
  }
}

@Suite struct LoadPlanTests {
  private func plan(_ change: (inout LoadScenario) -> Void = { _ in }, devices: Int = 20) -> LoadPlan {
    var scenario = LoadScenario()
    change(&scenario)
    return LoadPlan(scenario, deviceCount: devices)
  }

  @Test func aMessageHasOneTargetAndSizeHoweverOftenItIsAsked() {
    let plan = plan { $0.sizes = .between(100, 900) }
    for number in 0..<200 {
      #expect(plan.target(sender: 3, number: number) == plan.target(sender: 3, number: number))
      #expect((100...900).contains(plan.bytes(sender: 3, number: number)))
    }
  }

  @Test func allDevicesAndSizesHaveTheirShare() {
    let plan = plan { $0.sizes = .mixed([.init(bytes: 100, weight: 3), .init(bytes: 2_000, weight: 1)]) }
    var perDevice = [Int](repeating: 0, count: 20)
    var small = 0
    for number in 0..<20_000 {
      if case .device(let index) = plan.target(sender: 0, number: number) { perDevice[index] += 1 }
      if plan.bytes(sender: 0, number: number) == 100 { small += 1 }
    }
    #expect(perDevice.allSatisfy { (850...1_150).contains($0) })
    #expect((14_500...15_500).contains(small))
  }

  @Test func topicsGetTheirShareAndTheirSubscribers() {
    let plan = plan {
      $0.topics.count = 3
      $0.topics.share = 0.1
      $0.topics.subscribers = 7
    }
    let toTopics = (0..<10_000).count {
      if case .topic = plan.target(sender: 0, number: $0) { true } else { false }
    }
    #expect((850...1_150).contains(toTopics))
    for topic in 0..<3 {
      let subscribers = plan.subscribers(of: topic)
      #expect(subscribers.count == 7)
      #expect(subscribers.allSatisfy { plan.isSubscriber($0, of: topic) })
      #expect((0..<20).count { plan.isSubscriber($0, of: topic) } == 7)
    }
  }

  @Test func tooFewFilesAreComplainedAboutWithBothNumbers() {
    #expect(FileLimit.complaint(streams: 18_000, limit: 20_000) == nil)
    let complaint = FileLimit.complaint(streams: 20_000, limit: 20_000)
    #expect(complaint?.contains("20064") == true)
    #expect(complaint?.contains("at most 19936 streams") == true)
  }
}
