import DeliveryCore
import Seams
import Testing

struct SenderStreamTests {
  // MARK: Draining

  @Test func drainingOpensTheNextStreamFirstAndKeepsReadingTheOld() {
    var story = SenderStory.connected()
    _ = story.submit("old")
    #expect(
      story.draining(1) == [
        .changed(.draining(.init(1))), .changed(.connecting(.init(2))), .openStream(.init(2)),
      ])
    #expect(story.submit("new") == [])
    #expect(story.opened(2) == [.changed(.connected(.init(2))), story.write("new", 2)])
    #expect(story.acked("old", on: 1) == [story.finish("old", .acked(registrationID: nil))])
  }

  @Test func theOldStreamsUnackedAreResentOnlyAfterItClosed() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    _ = story.submit("b")
    _ = story.draining(1)
    #expect(story.opened(2) == [.changed(.connected(.init(2)))])
    #expect(story.closed(1, .init(.peerEnded)) == [story.write("a", 2), story.write("b", 2)])
    #expect(story.acked("a", on: 2) == [story.finish("a", .acked(registrationID: nil), attempts: 2)])
  }

  @Test func aDrainingNackResendsAtOnceElsewhere() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    #expect(
      story.nacked("a", "CONNECTION_DRAINING") == [
        .changed(.draining(.init(1))), .changed(.connecting(.init(2))), .openStream(.init(2)),
      ])
    #expect(story.opened(2) == [.changed(.connected(.init(2))), story.write("a", 2)])
  }

  @Test func aDrainingNackOnAnOldStreamGoesToTheCurrentOne() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    _ = story.draining(1)
    _ = story.opened(2)
    #expect(story.nacked("a", "CONNECTION_DRAINING") == [story.write("a", 2)])
  }

  @Test func eachStreamHasItsOwnWindow() {
    var story = SenderStory.connected(.init(windowMax: 2))
    for id in ["a", "b", "c", "d", "e"] { _ = story.submit(id) }
    _ = story.draining(1)
    #expect(
      story.opened(2) == [.changed(.connected(.init(2))), story.write("c", 2), story.write("d", 2)])
    // An ack on the draining stream makes no room on the current one.
    #expect(story.acked("a", on: 1) == [story.finish("a", .acked(registrationID: nil))])
  }

  @Test func anAnnouncementForAnOldStreamChangesNothing() {
    var story = SenderStory.connected()
    _ = story.draining(1)
    #expect(story.draining(1) == [])
    _ = story.opened(2)
    #expect(story.draining(1) == [])
  }

  @Test func aDrainingStreamThatNeverClosesIsEnded() {
    var story = SenderStory.connected(.init(drainTimeout: .seconds(120)))
    _ = story.draining(1)
    _ = story.opened(2)
    #expect(story.pass(.seconds(120)) == [.endStream(.init(1))])
    #expect(story.closed(1, .init(.ended)) == [])
  }

  @Test func moreDrainingStreamsThanAllowedEndTheOldest() {
    var story = SenderStory.connected(.init(drainingMax: 1))
    _ = story.submit("a")
    _ = story.acked("a")
    _ = story.draining(1)
    _ = story.opened(2)
    _ = story.submit("b")
    _ = story.acked("b", on: 2)
    #expect(story.draining(2).contains(.endStream(.init(1))))
  }

  @Test func aServerThatDrainsEveryStreamAtOnceIsNotSpunOn() throws {
    var story = SenderStory.connected()
    _ = story.draining(1)
    _ = story.opened(2)
    _ = story.draining(2)
    #expect(story.machine.currentStream == nil)
    let due = try #require(story.machine.nextDeadline())
    #expect(due > story.now)
  }

  // MARK: Loss

  @Test func aLostStreamIsReopenedAtOnceAndItsUnackedResentUnderTheSameIds() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    _ = story.submit("b")
    _ = story.submit("c")
    _ = story.acked("b")
    #expect(
      story.closed(1) == [
        .changed(.disconnected(.init(.lost), retryAfter: .zero)), .changed(.connecting(.init(2))),
        .openStream(.init(2)),
      ])
    #expect(story.submit("d") == [])
    #expect(
      story.opened(2) == [
        .changed(.connected(.init(2))), story.write("a", 2), story.write("c", 2), story.write("d", 2),
      ])
  }

  @Test func aFailedConnectWaitsBeforeTheNext() {
    var story = SenderStory()
    _ = story.start()
    var waits: [Duration] = []
    for stream in UInt32(1)...10 {
      let before = story.now
      let actions = story.closed(stream, .init(.connectFailed))
      if case .changed(.disconnected(_, .some(let wait))) = actions.first { waits.append(wait) }
      if story.machine.nextDeadline() != nil { _ = story.passToDeadline() }
      #expect(story.now - before == waits.last)
    }
    #expect(waits.count == 10)
    #expect(waits.reduce(.zero, +) > .seconds(10))
  }

  @Test func withoutResendAMessageOfALostStreamFails() {
    var story = SenderStory.connected(.init(retry: RetryRules(repeatsAfterClose: false)))
    _ = story.submit("a")
    #expect(story.closed(1).contains(story.finish("a", .streamLost)))
  }

  @Test func withoutReconnectTheFirstLossClosesTheSender() {
    var story = SenderStory.connected(.init(reconnects: false))
    _ = story.submit("a")
    #expect(
      story.closed(1) == [
        .changed(.disconnected(.init(.lost), retryAfter: nil)), story.finish("a", .closed),
        .changed(.closed),
      ])
    #expect(story.answer(toSubmitting: "b") == .closed)
  }

  @Test func aReplacedStreamIsNotOpenedAgain() {
    var story = SenderStory.connected()
    #expect(
      story.closed(1, .init(.replaced)) == [
        .changed(.disconnected(.init(.replaced), retryAfter: nil)), .changed(.closed),
      ])
    #expect(story.machine.isClosed)
  }

  @Test func refusedCredentialsAreTriedAgainUnlessToldToStop() {
    var patient = SenderStory()
    _ = patient.start()
    _ = patient.closed(1, .init(.loginRefused))
    #expect(!patient.machine.isClosed)
    var strict = SenderStory(.init(stopsWhenRefused: true))
    _ = strict.start()
    _ = strict.closed(1, .init(.loginRefused))
    #expect(strict.machine.isClosed)
  }

  @Test func eventsOfStreamsLongGoneChangeNothing() {
    var story = SenderStory.connected()
    _ = story.closed(1)
    _ = story.opened(2)
    #expect(story.closed(1) == [])
    #expect(story.opened(1) == [])
    #expect(story.draining(1) == [])
    #expect(story.machine.currentStream == StreamNumber(2))
  }

  // MARK: Close

  @Test func closingWaitsForWhatIsPending() {
    var story = SenderStory.connected(.init(windowMax: 1))
    _ = story.submit("a")
    _ = story.submit("b")
    #expect(story.close() == [])
    #expect(story.answer(toSubmitting: "c") == .closed)
    #expect(story.acked("a") == [story.finish("a", .acked(registrationID: nil)), story.write("b", 1)])
    #expect(
      story.acked("b") == [story.finish("b", .acked(registrationID: nil)), .endStream(.init(1))])
    #expect(story.closed(1, .init(.ended)) == [.changed(.closed)])
  }

  @Test func closingGivesUpAtItsDeadline() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    _ = story.close(within: .seconds(5))
    #expect(
      story.pass(.seconds(5)) == [
        story.finish("a", .closed, after: .seconds(5)), .endStream(.init(1)),
      ])
    #expect(story.closed(1) == [.changed(.closed)])
  }

  @Test func closingBeforeTheStartClosesAtOnce() {
    var story = SenderStory()
    #expect(story.close() == [.changed(.closed)])
    #expect(story.start() == [])
  }

  @Test func closingWhileConnectingEndsTheAttempt() {
    var story = SenderStory()
    _ = story.start()
    #expect(story.close() == [.endStream(.init(1))])
    #expect(story.opened(1) == [])
    #expect(story.closed(1, .init(.ended)) == [.changed(.closed)])
  }

  @Test func closingWhileRestingNeedsNothingOfThePeer() {
    var story = SenderStory()
    _ = story.start()
    _ = story.closed(1, .init(.connectFailed))
    #expect(story.close() == [.changed(.closed)])
  }

  @Test func closingEndsDrainingStreamsToo() {
    var story = SenderStory.connected()
    _ = story.draining(1)
    _ = story.opened(2)
    #expect(story.close() == [.endStream(.init(2)), .endStream(.init(1))])
    _ = story.closed(2, .init(.ended))
    #expect(story.closed(1, .init(.ended)) == [.changed(.closed)])
  }
}
