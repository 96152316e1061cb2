import DeliveryCore
import Seams
import Testing

struct SenderRetryTests {
  @Test(arguments: ["SERVICE_UNAVAILABLE", "INTERNAL_SERVER_ERROR", "SOMETHING_NEW"])
  func aBusyServerIsTriedAgainOnTheSameConnectionAfterASecondOrMore(code: String) throws {
    var story = SenderStory.connected()
    _ = story.submit("a")
    let nackedAt = story.now
    #expect(story.nacked("a", code) == [])
    #expect(story.machine.pendingCount == 0)
    let due = try #require(story.machine.nextDeadline())
    #expect(due - nackedAt >= .seconds(1))
    #expect(due - nackedAt <= .seconds(2))
    #expect(story.passToDeadline() == [story.write("a", 1)])
    let latency = story.now - nackedAt
    #expect(
      story.acked("a") == [
        story.finish("a", .acked(registrationID: nil), attempts: 2, after: latency)
      ])
  }

  @Test func theTriesEndWithTheLastNack() {
    var story = SenderStory.connected(.init(retry: RetryRules(triesMax: 3)))
    _ = story.submit("a")
    let start = story.now
    _ = story.nacked("a", "SERVICE_UNAVAILABLE")
    _ = story.passToDeadline()
    _ = story.nacked("a", "SERVICE_UNAVAILABLE")
    _ = story.passToDeadline()
    let nack = Nack(code: "INTERNAL_SERVER_ERROR", text: "")
    #expect(
      story.nacked("a", nack.code) == [
        story.finish("a", .nacked(nack), attempts: 3, after: story.now - start)
      ])
  }

  @Test func aWaitBeyondTheTotalDeadlineGivesUpAtOnce() {
    var story = SenderStory.connected(.init(retry: RetryRules(totalTimeout: .milliseconds(900))))
    _ = story.submit("a")
    let nack = Nack(code: "SERVICE_UNAVAILABLE", text: "")
    #expect(story.nacked("a", nack.code) == [story.finish("a", .nacked(nack))])
  }

  @Test func theTotalDeadlineEndsAHeldMessage() {
    var story = SenderStory(.init(retry: RetryRules(totalTimeout: .seconds(20))))
    _ = story.submit("a")
    #expect(
      story.pass(.seconds(20)) == [
        story.finish("a", .deadline(nil), attempts: 0, after: .seconds(20))
      ])
  }

  @Test func aTargetWithTooManyMessagesIsTriedMuchLater() throws {
    var story = SenderStory.connected()
    _ = story.submit("a")
    _ = story.nacked("a", "DEVICE_MESSAGE_RATE_EXCEEDED")
    let due = try #require(story.machine.nextDeadline())
    #expect(due - story.now >= .seconds(10))
  }

  @Test func aNackForAMessageWrittenElsewhereIsIgnored() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    #expect(story.nacked("a", "BAD_REGISTRATION", on: 9) == [])
    #expect(story.machine.pendingCount == 1)
  }

  @Test func withoutTriesANackIsFinal() {
    var story = SenderStory.connected(.init(retry: RetryRules(triesMax: 1)))
    _ = story.submit("a")
    let nack = Nack(code: "SERVICE_UNAVAILABLE", text: "")
    #expect(story.nacked("a", nack.code) == [story.finish("a", .nacked(nack))])
  }

  @Test func waitsDoubleUpToTheirCeiling() {
    let rules = RetryRules(triesMax: 100, waitMax: .seconds(20))
    var chance = SeededChance(seed: 7)
    for failures in 1...40 {
      var longest = Duration.zero
      for _ in 0..<200 {
        let wait = rules.wait(after: .busy, failures: failures, using: &chance) ?? .zero
        #expect(wait >= .seconds(1))
        longest = max(longest, wait)
      }
      let ceiling = Duration.seconds(min(20, 1 << min(failures, 10)))
      #expect(longest <= ceiling)
      #expect(longest > ceiling * 0.8)
    }
  }

  @Test func codesOfTheMessageItselfAreNeverTriedAgain() {
    for code in [
      "INVALID_JSON", "BAD_REGISTRATION", "DEVICE_UNREGISTERED", "SENDER_ID_MISMATCH", "BAD_ACK",
      "INVALID_APNS_CREDENTIAL", "MESSAGE_TOO_BIG", "TOO_MANY_MESSAGES", "TTL_EXCEEDED",
    ] {
      #expect(RetryRules.retryClass(code: code) == .never)
    }
  }
}

struct BackoffTests {
  @Test func aDropAfterAWorkingStreamReconnectsAtOnce() {
    var backoff = Backoff()
    var chance = SeededChance(seed: 1)
    _ = backoff.failed(using: &chance)
    #expect(backoff.dropped(lived: .seconds(1), progressed: true, using: &chance) == .zero)
    #expect(backoff.dropped(lived: .seconds(60), progressed: false, using: &chance) == .zero)
    #expect(backoff.failures == 0)
  }

  @Test func aPeerThatDropsEveryNewStreamIsNotSpunOn() {
    var backoff = Backoff()
    var chance = SeededChance(seed: 1)
    #expect(backoff.dropped(lived: .zero, progressed: false, using: &chance) == .zero)
    var waited = Duration.zero
    for _ in 0..<20 { waited += backoff.dropped(lived: .zero, progressed: false, using: &chance) }
    #expect(waited > .seconds(60))
  }

  @Test func failuresWaitLongerUpToTheCeiling() {
    let settings = Backoff.Settings(waitFirst: .seconds(1), waitMax: .seconds(30))
    var chance = SeededChance(seed: 3)
    for failures in 1...100 {
      var longest = Duration.zero
      for _ in 0..<100 {
        var backoff = Backoff(settings)
        var wait = Duration.zero
        for _ in 0..<failures { wait = backoff.failed(using: &chance) }
        longest = max(longest, wait)
      }
      #expect(longest <= .seconds(min(30, 1 << min(failures - 1, 10))))
    }
  }

  @Test func aDropSpreadKeepsDevicesFromComingAtTheSameInstant() {
    var chance = SeededChance(seed: 5)
    var waits: Set<Duration> = []
    for _ in 0..<100 {
      var backoff = Backoff(.init(dropSpread: .seconds(2)))
      let wait = backoff.dropped(lived: .seconds(60), progressed: true, using: &chance)
      #expect(wait <= .seconds(2))
      waits.insert(wait)
    }
    #expect(waits.count > 90)
  }
}
