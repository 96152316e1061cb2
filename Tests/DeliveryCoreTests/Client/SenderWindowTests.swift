import DeliveryCore
import Seams
import Testing

struct SenderWindowTests {
  @Test func aMessageBeforeTheStreamOpensIsHeldAndThenWritten() {
    var story = SenderStory()
    #expect(story.submit("a") == [])
    #expect(story.start() == [.changed(.connecting(.init(1))), .openStream(.init(1))])
    #expect(story.submit("b") == [])
    #expect(story.opened(1) == [.changed(.connected(.init(1))), story.write("a", 1), story.write("b", 1)])
  }

  @Test func aFullWindowHoldsTheNextMessage() {
    var story = SenderStory.connected(.init(windowMax: 2))
    let first = story.submit("a")
    #expect(first == [story.write("a", 1)])
    let second = story.submit("b")
    #expect(second == [story.write("b", 1)])
    #expect(story.submit("c") == [])
    #expect(story.machine.pendingCount == 2)
    #expect(story.acked("b") == [story.finish("b", .acked(registrationID: nil)), story.write("c", 1)])
  }

  @Test func anAckOutOfOrderFreesOneSlot() {
    var story = SenderStory.connected(.init(windowMax: 3))
    for id in ["a", "b", "c", "d"] { _ = story.submit(id) }
    #expect(story.acked("c") == [story.finish("c", .acked(registrationID: nil)), story.write("d", 1)])
  }

  @Test func unknownAndDoubleAcksChangeNothing() {
    var story = SenderStory.connected(.init(windowMax: 1))
    _ = story.submit("a")
    _ = story.submit("b")
    #expect(story.acked("nobody") == [])
    _ = story.acked("a")
    #expect(story.acked("a") == [])
    #expect(story.machine.pendingCount == 1)
    #expect(story.machine.strayAnswers == 2)
  }

  @Test func anAckForAHeldMessageChangesNothing() {
    var story = SenderStory.connected(.init(windowMax: 1))
    _ = story.submit("a")
    _ = story.submit("held")
    #expect(story.acked("held") == [])
    #expect(story.machine.messageCount == 2)
  }

  @Test func anAckCarriesTheCanonicalToken() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    #expect(story.acked("a", token: "new") == [story.finish("a", .acked(registrationID: "new"))])
  }

  @Test func aNackOfTheMessageItselfEndsItAndFreesItsSlot() {
    var story = SenderStory.connected(.init(windowMax: 1))
    _ = story.submit("a")
    _ = story.submit("b")
    #expect(
      story.nacked("a", "DEVICE_UNREGISTERED") == [
        story.finish("a", .nacked(Nack(code: "DEVICE_UNREGISTERED", text: ""))), story.write("b", 1),
      ])
  }

  @Test func aStanzaErrorIsFatalForThatMessageOnly() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    _ = story.submit("b")
    #expect(story.stanzaRefused("a") == [story.finish("a", .stanzaRefused("bad"))])
    #expect(story.stanzaRefused("a") == [])
    #expect(story.machine.pendingCount == 1)
  }

  @Test func cancellingFreesTheSlot() {
    var story = SenderStory.connected(.init(windowMax: 1))
    _ = story.submit("a")
    _ = story.submit("b")
    #expect(story.cancel("a") == [story.finish("a", .cancelled), story.write("b", 1)])
    #expect(story.cancel("a") == [])
  }

  @Test func cancellingAHeldMessageNeverWritesIt() {
    var story = SenderStory.connected(.init(windowMax: 1))
    _ = story.submit("a")
    _ = story.submit("b")
    #expect(story.cancel("b") == [story.finish("b", .cancelled, attempts: 0)])
    #expect(story.acked("a") == [story.finish("a", .acked(registrationID: nil))])
  }

  @Test func aHandleOfAnEndedMessageDoesNotTouchTheNextInItsSlot() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    let old = story.slot("a")
    _ = story.acked("a")
    _ = story.submit("b")
    #expect(story.slot("b").index == old.index)
    #expect(story.cancel("a") == [])
    #expect(story.machine.pendingCount == 1)
  }

  @Test func anIdThatHasNotEndedIsRefused() {
    var story = SenderStory.connected()
    _ = story.submit("a")
    #expect(story.answer(toSubmitting: "a") == .duplicateID)
    _ = story.acked("a")
    #expect(story.answer(toSubmitting: "a") != .duplicateID)
  }

  @Test func aFullTableRefusesAndHasRoomAgainAfterAnEnd() {
    var story = SenderStory.connected(.init(windowMax: 1, messagesMax: 2))
    _ = story.submit("a")
    _ = story.submit("b")
    #expect(story.machine.room == 0)
    #expect(story.answer(toSubmitting: "c") == .full)
    _ = story.acked("a")
    #expect(story.machine.room == 1)
    #expect(story.answer(toSubmitting: "c") != .full)
  }

  @Test func aSlotIsFreedAtTheAckDeadlineWithAnErrorToTheCaller() {
    let rules = RetryRules(triesMax: 1)
    var story = SenderStory.connected(.init(windowMax: 1, ackTimeout: .seconds(30), retry: rules))
    _ = story.submit("a")
    _ = story.submit("b")
    #expect(story.pass(.seconds(29)) == [])
    #expect(
      story.pass(.seconds(1)) == [
        story.finish("a", .ackOverdue, after: .seconds(30)), story.write("b", 1),
      ])
  }

  @Test func anOverdueMessageIsWrittenAgainUnderItsIdUntilTheTriesEnd() {
    let rules = RetryRules(triesMax: 2)
    var story = SenderStory.connected(.init(ackTimeout: .seconds(30), retry: rules))
    _ = story.submit("a")
    #expect(story.passToDeadline() == [story.write("a", 1)])
    #expect(
      story.passToDeadline() == [story.finish("a", .ackOverdue, attempts: 2, after: .seconds(60))])
  }

  @Test func aLateAckOfARepeatedMessageCounts() {
    var story = SenderStory.connected(.init(ackTimeout: .seconds(30)))
    _ = story.submit("a")
    _ = story.nacked("a", "SERVICE_UNAVAILABLE")
    // The wait before the next try is running when the ack of an earlier write comes.
    #expect(story.acked("a") == [story.finish("a", .acked(registrationID: nil))])
    #expect(story.machine.nextDeadline() == nil)
  }

  /// A thousand messages against a server that acks backwards, nacks every tenth, acks what it never got,
  /// acks twice, and holds five for ever.
  @Test func thePendingTableIsEmptyAtTheEndWhateverTheOrderOfAcks() {
    let settings = SenderMachine.Settings(ackTimeout: .seconds(30), retry: RetryRules(triesMax: 1))
    var story = SenderStory.connected(settings)
    var onWire: [String] = []
    var ends: [SendSlot: SendOutcome.End] = [:]
    var overdue = 0
    var names: [SendSlot: String] = [:]
    func take(_ actions: [SenderStory.Action], _ names: [SendSlot: String]) {
      for action in actions {
        switch action {
        case .write(let slot, _): onWire.append(names[slot] ?? "?")
        case .finish(let slot, let outcome):
          #expect(ends.updateValue(outcome.end, forKey: slot) == nil)
          if outcome.end == .ackOverdue { overdue += 1 }
        default: Issue.record("unexpected \(action)")
        }
      }
    }
    for number in 0..<1_000 {
      let id = "m\(number)"
      let actions = story.submit(id)
      names[story.slot(id)] = id
      take(actions, names)
    }
    let held: Set<String> = ["m3", "m30", "m300", "m303", "m333"]
    while story.machine.messageCount > held.count {
      #expect(story.machine.pendingCount <= 100)
      let batch = onWire.reversed().filter { !held.contains($0) }
      onWire.removeAll()
      for id in batch {
        if id.hasSuffix("0") {
          take(story.nacked(id, "BAD_REGISTRATION"), names)
        } else {
          take(story.acked(id), names)
          take(story.acked(id), names)
        }
        take(story.acked("never-\(id)"), names)
      }
    }
    #expect(story.machine.pendingCount == held.count)
    take(story.pass(.seconds(30)), names)
    #expect(overdue == held.count)
    #expect(ends.count == 1_000)
    #expect(story.machine.messageCount == 0)
    #expect(story.machine.pendingCount == 0)
    #expect(story.machine.nextDeadline() == nil)
  }
}
