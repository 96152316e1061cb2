import DeliveryCore
import Seams
import Testing

/// A machine over several streams.
struct SenderPoolTests {
  private func settings(
    streams: Int = 2, window: Int = 2, reconnects: Bool = true, stopsWhenRefused: Bool = false
  ) -> SenderMachine.Settings {
    SenderMachine.Settings(
      streams: streams, windowMax: window, reconnects: reconnects, stopsWhenRefused: stopsWhenRefused)
  }

  /// All streams are open.
  private func open(_ settings: SenderMachine.Settings, seed: UInt64 = 1) -> SenderStory {
    var story = SenderStory.connected(settings, seed: seed)
    var next: UInt32 = 2
    while story.machine.openStreamCount < settings.streams {
      for action in story.passToDeadline() where action == .openStream(StreamNumber(next)) {
        _ = story.opened(next)
        next += 1
      }
    }
    return story
  }

  private func streams(openedBy actions: [SenderStory.Action]) -> [UInt32] {
    actions.compactMap { if case .openStream(let stream) = $0 { stream.value } else { nil } }
  }

  @Test func oneLaneGoesFirstAndTheOthersFollowWithinAMoment() {
    var story = SenderStory(settings(streams: 4))
    #expect(streams(openedBy: story.start()) == [1])
    let begin = story.now
    var opened = streams(openedBy: story.opened(1))
    while opened.count < 3 { opened += streams(openedBy: story.passToDeadline()) }
    #expect(opened.sorted() == [2, 3, 4])
    #expect(story.now - begin <= .milliseconds(30))
  }

  @Test func aMessageGoesToTheStreamWithTheFewestUnanswered() {
    var story = open(settings(streams: 2, window: 3))
    let first = ["a", "b", "c", "d"].map { story.submit($0) }
    #expect(first.flatMap { $0 }.count == 4)
    #expect(story.machine.pendingCount(on: StreamNumber(1)) == 2)
    #expect(story.machine.pendingCount(on: StreamNumber(2)) == 2)
    let onTwo = ["a", "b", "c", "d"].filter { id in first.contains([story.write(id, 2)]) }
    for id in onTwo { _ = story.acked(id, on: 2) }
    #expect(story.submit("e") == [story.write("e", 2)])
    #expect(story.submit("f") == [story.write("f", 2)])
  }

  @Test func whatALostStreamDidNotAnswerGoesToTheOthersAtOnce() {
    var story = open(settings(streams: 2, window: 10))
    for id in ["a", "b", "c", "d"] { _ = story.submit(id) }
    let actions = story.closed(1)
    let writes = actions.filter { if case .write = $0 { true } else { false } }
    #expect(writes.count == 2)
    #expect(story.machine.pendingCount(on: StreamNumber(2)) == 4)
    // And one more is opened in its place, while nobody is told of a disconnection.
    #expect(streams(openedBy: actions) == [3])
    #expect(!actions.contains { if case .changed(.disconnected) = $0 { true } else { false } })
    // Late answers on the stream they were written on count once.
    for id in ["a", "b", "c", "d"] { #expect(story.acked(id, on: 2).count == 1) }
    #expect(story.machine.messageCount == 0)
  }

  @Test func whatDoesNotFitTheOthersWaitsAheadOfNewMessages() {
    var story = open(settings(streams: 2, window: 2))
    for id in ["a", "b", "c", "d"] { _ = story.submit(id) }
    #expect(story.submit("new").isEmpty)
    let actions = story.closed(1)
    #expect(!actions.contains { if case .write = $0 { true } else { false } })
    let reopened = story.opened(3)
    let written = reopened.compactMap { action -> String? in
      if case .write(let slot, _) = action { story.machine.id(of: slot) } else { nil }
    }
    #expect(written.count == 2 && !written.contains("new"))
  }

  @Test func whileNoStreamIsOpenOneLaneTriesForAll() {
    var story = open(settings(streams: 5))
    // The server goes away: every lane notices, and some try at once.
    var trying: Set<UInt32> = []
    for stream in 1...5 as ClosedRange<UInt32> { trying.formUnion(streams(openedBy: story.closed(stream))) }
    for stream in trying.sorted() { _ = story.closed(stream, .init(.connectFailed)) }
    for _ in 0..<20 {
      let opened = streams(openedBy: story.passToDeadline())
      #expect(opened.count == 1)
      for stream in opened { #expect(streams(openedBy: story.closed(stream, .init(.connectFailed))).isEmpty) }
    }
    var opened = streams(openedBy: story.passToDeadline())
    #expect(opened.count == 1)
    for stream in opened { _ = story.opened(stream) }
    opened = []
    while opened.count < 4 { opened += streams(openedBy: story.passToDeadline()) }
    #expect(opened.count == 4)
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func aServerThatAsksForAPauseGetsIt(seed: UInt64) {
    var story = SenderStory(settings(streams: 1), seed: seed)
    _ = story.start()
    _ = story.opened(1)
    let actions = story.closed(1, .init(.streamError, "system-shutdown", retryAfter: .seconds(8)))
    #expect(streams(openedBy: actions).isEmpty)
    let wait = story.machine.nextDeadline().map { $0 - story.now } ?? .zero
    #expect(wait >= .seconds(8) && wait <= .seconds(16))
  }

  @Test func aPauseOfAPeerIsBounded() {
    var chance = SeededChance(seed: 1)
    let wait = Backoff().heeding(.seconds(1 << 40), .zero, using: &chance)
    #expect(wait <= .seconds(3_600))
    #expect(Backoff().heeding(nil, .seconds(3), using: &chance) == .seconds(3))
  }

  @Test func aWindowAboveTheProtocolsIsUsedOnlyWhenGranted() {
    func written(_ granted: Int?) -> Int {
      var story = SenderStory(settings(streams: 1, window: 500))
      _ = story.start()
      _ = story.opened(1, window: granted)
      for index in 0..<600 { _ = story.submit("m\(index)") }
      return story.machine.pendingCount
    }
    #expect(written(nil) == 100)
    #expect(written(300) == 300)
    #expect(written(10_000) == 500)
    // Less than the protocol allows is not taken from it.
    #expect(written(5) == 100)
  }

  @Test func messagesOfOneOrderWaitForEachOther() {
    var story = open(settings(streams: 2, window: 10))
    #expect(story.submit("a1", order: 1).count == 1)
    #expect(story.submit("a2", order: 1).isEmpty)
    #expect(story.submit("a3", order: 1).isEmpty)
    #expect(story.submit("b1", order: 2).count == 1)
    #expect(story.submit("free").count == 1)
    let ended = story.acked("a1", on: 1) + story.acked("a1", on: 2)
    #expect(ended.contains { if case .write(story.slot("a2"), _) = $0 { true } else { false } })
    #expect(!ended.contains { if case .write(story.slot("a3"), _) = $0 { true } else { false } })
  }

  @Test func aMessageThatIsTriedAgainKeepsItsPlaceInTheOrder() {
    var story = open(settings(streams: 1, window: 10))
    _ = story.submit("a1", order: 1)
    _ = story.submit("a2", order: 1)
    #expect(story.nacked("a1", "SERVICE_UNAVAILABLE", on: 1).isEmpty)
    #expect(story.passToDeadline() == [story.write("a1", 1)])
    let ended = story.nacked("a1", "BAD_REGISTRATION", on: 1)
    #expect(ended.contains(story.write("a2", 1)))
  }

  @Test func aMessageInTheMiddleOfAnOrderCanBeTakenBack() {
    var story = open(settings(streams: 1, window: 10))
    for id in ["a1", "a2", "a3"] { _ = story.submit(id, order: 1) }
    #expect(story.cancel("a2") == [story.finish("a2", .cancelled, attempts: 0)])
    #expect(story.acked("a1").contains(story.write("a3", 1)))
    #expect(story.cancel("a3").count == 1)
    #expect(story.submit("a4", order: 1) == [story.write("a4", 1)])
  }

  @Test func aRefusedKeyIsTriedByOneLaneAlone() {
    var story = SenderStory(settings(streams: 8, stopsWhenRefused: true))
    #expect(streams(openedBy: story.start()) == [1])
    let actions = story.closed(1, .init(.loginRefused))
    #expect(streams(openedBy: actions).isEmpty)
    #expect(story.machine.isClosed)
  }

  @Test func withoutReconnectingThePoolLivesAsLongAsOneStream() {
    var story = open(settings(streams: 2, reconnects: false))
    _ = story.submit("a")
    #expect(streams(openedBy: story.closed(1)).isEmpty)
    #expect(!story.machine.isClosed && story.machine.openStreamCount == 1)
    #expect(story.machine.pendingCount(on: StreamNumber(2)) == 1)
    let last = story.closed(2)
    #expect(last.contains { if case .finish(story.slot("a"), _) = $0 { true } else { false } })
    #expect(story.machine.isClosed)
  }

  @Test func drainingStreamsAreReplacedWhileOthersGoOn() {
    var story = open(settings(streams: 2, window: 2))
    for id in ["a", "b"] { _ = story.submit(id) }
    let actions = story.draining(1)
    #expect(streams(openedBy: actions) == [3])
    #expect(!actions.contains(.changed(.draining(StreamNumber(1)))))
    #expect(story.submit("c") == [story.write("c", 2)])
    _ = story.opened(3)
    #expect(story.submit("d") == [story.write("d", 3)])
  }
}
