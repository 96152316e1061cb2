import DeliveryCore
import Seams
import Testing

/// A server that loses, doubles, nacks, drains and drops, driven by one seed.
private struct UnreliableServer {
  var chance: SeededChance
  /// Written and not yet answered, by stream.
  var inbox: [UInt32: [String]] = [:]
  var opening: Set<UInt32> = []
  var open: Set<UInt32> = []
  var refusesAll = false

  init(seed: UInt64) { chance = SeededChance(seed: seed) }

  mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &chance) < percent }
}

struct SenderRandomTests {
  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func everySubmittedMessageEndsExactlyOnceAndTheWindowHolds(seed: UInt64) {
    var server = UnreliableServer(seed: seed)
    let rules = RetryRules(
      triesMax: Int.random(in: 1...4, using: &server.chance),
      totalTimeout: .seconds(Int.random(in: 5...300, using: &server.chance)),
      repeatsOverdue: server.happens(70), repeatsAfterClose: server.happens(80))
    // Then the server's own count of what it did not answer must hold too.
    let acksAreNeverOverdue = server.happens(50)
    let settings = SenderMachine.Settings(
      streams: Int.random(in: 1...5, using: &server.chance),
      windowMax: Int.random(in: 1...20, using: &server.chance),
      messagesMax: Int.random(in: 1...60, using: &server.chance),
      ackTimeout: acksAreNeverOverdue
        ? .seconds(10_000_000) : .seconds(Int.random(in: 1...40, using: &server.chance)),
      drainTimeout: .seconds(10), drainingMax: Int.random(in: 1...3, using: &server.chance),
      retry: rules)
    var story = SenderStory(settings, seed: seed)
    var names: [SendSlot: String] = [:]
    var ended: Set<String> = []
    var submitted = 0
    var closedSeen = false
    var pendingByStream: [UInt32: Set<String>] = [:]
    // Messages that have not ended, by order, as they were submitted.
    var waiting: [UInt64: [String]] = [:]
    var orders: [String: UInt64] = [:]

    func apply(_ actions: [SenderStory.Action]) {
      for action in actions {
        #expect(!closedSeen, "an action after the end: \(action)")
        switch action {
        case .openStream(let stream): server.opening.insert(stream.value)
        case .write(let slot, let stream):
          guard let name = names[slot] else {
            Issue.record("a write for an unknown slot")
            continue
          }
          #expect(!ended.contains(name))
          if let order = orders[name] { #expect(waiting[order]?.first == name, "out of its order") }
          #expect(server.open.contains(stream.value), "written on a stream that is not open")
          if acksAreNeverOverdue {
            for (other, ids) in pendingByStream where server.open.contains(other) {
              #expect(!ids.contains(name), "pending on two streams")
            }
            pendingByStream[stream.value, default: []].insert(name)
            #expect(pendingByStream[stream.value, default: []].count <= settings.windowMax)
          }
          #expect(story.machine.pendingCount(on: stream) <= settings.windowMax)
          server.inbox[stream.value, default: []].append(name)
        case .finish(let slot, _):
          guard let name = names.removeValue(forKey: slot) else {
            Issue.record("an end for an unknown slot")
            continue
          }
          #expect(ended.insert(name).inserted, "ended twice")
          if let order = orders[name] { waiting[order]?.removeAll { $0 == name } }
          for stream in pendingByStream.keys { pendingByStream[stream]?.remove(name) }
        case .endStream(let stream):
          // The server goes along, after a while or at once.
          if server.happens(50) {
            drop(stream.value)
            toClose.append(stream.value)
          } else {
            endingLater.insert(stream.value)
          }
        case .changed(.closed): closedSeen = true
        case .changed: break
        }
      }
    }
    var toClose: [UInt32] = []
    var endingLater: Set<UInt32> = []
    func drop(_ stream: UInt32) {
      server.open.remove(stream)
      server.opening.remove(stream)
      server.inbox[stream] = nil
      pendingByStream[stream] = nil
    }
    func forget(_ id: String, _ stream: UInt32) { pendingByStream[stream]?.remove(id) }
    func submitOne() {
      let id = "m\(submitted)"
      var actions: [SenderStory.Action] = []
      let order = server.happens(50) ? UInt64.random(in: 0..<3, using: &server.chance) : nil
      if case .accepted(let slot) = story.machine.submit(id: id, order: order, now: story.now, &actions) {
        if let order {
          orders[id] = order
          waiting[order, default: []].append(id)
        }
        names[slot] = id
        submitted += 1
      }
      apply(actions)
    }
    func step(healed: Bool) {
      while let stream = toClose.popLast() { apply(story.closed(stream, .init(.ended))) }
      let choice = Int.random(in: 0..<100, using: &server.chance)
      let stream = server.open.sorted().randomElement(using: &server.chance)
      switch choice {
      case 0..<25:
        if let opening = server.opening.min() {
          server.opening.remove(opening)
          if healed || server.happens(80) {
            server.open.insert(opening)
            apply(story.opened(opening))
          } else {
            apply(story.closed(opening, .init(.connectFailed)))
          }
        }
      case 25..<75:
        guard let stream, var box = server.inbox[stream], !box.isEmpty else { break }
        let id = box.remove(at: Int.random(in: 0..<box.count, using: &server.chance))
        server.inbox[stream] = box
        if !healed, server.happens(5) { break }
        if !healed, server.happens(25) {
          let codes = [
            "SERVICE_UNAVAILABLE", "BAD_REGISTRATION", "DEVICE_MESSAGE_RATE_EXCEEDED",
            "CONNECTION_DRAINING", "INTERNAL_SERVER_ERROR",
          ]
          let code = codes.randomElement(using: &server.chance) ?? codes[0]
          forget(id, stream)
          apply(story.nacked(id, code, on: stream))
        } else {
          forget(id, stream)
          apply(story.acked(id, on: stream))
          if server.happens(10) { apply(story.acked(id, on: stream)) }
        }
      case 75..<80:
        if !healed, let stream { apply(story.draining(stream)) }
      case 80..<84:
        if !healed || server.open.count > 1, let stream {
          drop(stream)
          apply(story.closed(stream, .init(.lost)))
        }
      case 84..<88:
        if let stream = endingLater.popFirst() {
          drop(stream)
          apply(story.closed(stream, .init(.ended)))
        }
      case 88..<90:
        if let slot = names.keys.sorted(by: { $0.index < $1.index }).first, !healed {
          story.now = story.now + .milliseconds(1)
          var actions: [SenderStory.Action] = []
          story.machine.cancel(slot, now: story.now, &actions)
          apply(actions)
        }
      default:
        if server.happens(30), let next = story.machine.nextDeadline() {
          story.now = max(story.now, next)
        } else {
          story.now = story.now + .milliseconds(Int.random(in: 0...400, using: &server.chance))
        }
        apply(story.pass(.zero))
      }
      #expect(server.opening.count <= settings.streams)
      #expect(story.machine.openStreamCount <= settings.streams)
      #expect(story.machine.messageCount <= settings.messagesMax)
      #expect(story.machine.messageCount == names.count)
    }

    apply(story.start())
    for _ in 0..<4_000 {
      if server.happens(40) { submitOne() }
      step(healed: false)
    }
    apply(story.close(within: .seconds(100_000)))
    var steps = 0
    while !closedSeen, steps < 20_000 {
      step(healed: true)
      steps += 1
    }
    #expect(closedSeen, "seed \(seed) did not settle")
    #expect(ended.count == submitted)
    #expect(story.machine.messageCount == 0 && story.machine.pendingCount == 0)
    #expect(story.machine.nextDeadline() == nil)
  }
}
