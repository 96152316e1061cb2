import ConnectionServer
import PushModel
import Stores

// What must be so when everything has settled.

extension Ledger {
  /// Held when the world is healed and quiet.
  ///
  /// - Parameter settledAt: Until then messages could be away from their devices.
  func close(_ run: Simulation, settledAt: Int64) {
    for message in sent { check(message, run, settledAt) }
    for message in upstream { check(message, run, settledAt) }
    checkCounts(run)
  }

  // MARK: One message

  private func check(_ message: SentMessage, _ run: Simulation, _ settledAt: Int64) {
    guard let end = message.end else {
      return fail("\(message.id) was neither acked nor refused nor given up")
    }
    if message.wrong != nil {
      if end == .acked { fail("\(message.id) was not valid and was acked") }
      return
    }
    switch end {
    case .acked:
      guard !message.isDryRun else { return }
      for number in message.receivers where message.takenCount(number) == 0 {
        if let reason = reasonForAbsence(message, number, run, settledAt) {
          run.world.remark("\(message.id) did not come to \(number): \(reason)")
        } else {
          fail("LOST: \(message.id) was acked and never came to registration \(number)")
        }
      }
    case .refused(let code):
      // What was refused for good at the first try cannot have been delivered.
      guard message.attempts == 1, NackCode.remedy(for: code) != .retryLater, code != "CONNECTION_DRAINING"
      else { return }
      if message.receivers.contains(where: { !(message.shows[$0] ?? []).isEmpty }) {
        fail("\(message.id) was refused as \(code) and delivered")
      }
    case .unknown: break
    }
    checkReceipt(message, run)
    checkHistory(message, run, end)
  }

  /// Why an acked message may not have been delivered; nil when nothing allows it.
  private func reasonForAbsence(
    _ message: SentMessage, _ number: Int, _ run: Simulation, _ settledAt: Int64
  ) -> String? {
    let registration = run.registrations[number]
    if registration.leftAt != nil { return "unregistered" }
    if message.ttl == 0 { return "now or never" }
    if let ttl = message.ttl {
      let taken = run.clock.wallRange(from: message.at, to: message.endedAt).lowerBound
      let latest = run.clock.wallRange(from: message.at, to: settledAt).upperBound
      if latest >= taken + Int64(ttl) * 1_000 { return "expired" }
    }
    if message.collapse != nil, isCollapsible(message, registration, run) { return "collapsed" }
    var others = 0
    for rival in sent where rival.collapse == nil && rival.ttl != 0 && rival.end != nil && rival.wrong == nil
    {
      // Each app of the device has a row of its own, and each node that the message came to stores it.
      let apps = rival.receivers.count { run.registrations[$0].device == registration.device }
      others += apps * (run.cluster == nil ? 1 : max(1, rival.attempts))
    }
    if message.collapse == nil, others >= run.swarm.storeLimits.storedPerDeviceMax { return "overflow" }
    if message.kind == .group, !run.swarm.isStrict || run.swarm.features.contains(.unregister) {
      // The ack says how many members were missed; the library passes on that there was one.
      return "group, counted in its ack"
    }
    return nil
  }

  private func isCollapsible(_ message: SentMessage, _ registration: SimRegistration, _ run: Simulation)
    -> Bool
  {
    let rivals = sent.filter {
      $0 !== message && $0.collapse != nil && $0.wrong == nil && !$0.isDryRun && $0.end != nil
        && $0.endedAt >= message.at
    }
    if rivals.contains(where: {
      $0.collapse == message.collapse && $0.receivers.contains(registration.number)
    }) {
      return true
    }
    // More keys than a device may have push the oldest out; the other receivers of this message on it have keys too.
    var keys = Set(
      message.receivers.map { run.registrations[$0] }.filter {
        $0.device == registration.device && $0 !== registration
      }
      .map { "\($0.app) \(message.collapse ?? "")" })
    for rival in rivals {
      for number in rival.receivers where run.registrations[number].device == registration.device {
        keys.insert("\(run.registrations[number].app) \(rival.collapse ?? "")")
      }
    }
    return keys.count >= run.swarm.storeLimits.collapseKeysPerDeviceMax
  }

  /// A receipt that was asked for is there when nothing in memory was ever lost.
  private func checkReceipt(_ message: SentMessage, _ run: Simulation) {
    guard message.wantsReceipt, message.end == .acked, run.swarm.isStrict else { return }
    if let core = run.server.core,
      core.history(of: message.id).contains(where: { $0.isEnd && $0 != .delivered })
    {
      return
    }
    if message.receivers.contains(where: { message.takenCount($0) > 0 }), message.receiptCount == 0 {
      fail("\(message.id) was delivered and its receipt never came")
    }
  }

  /// What the server says of a message, against what both ends saw.
  private func checkHistory(_ message: SentMessage, _ run: Simulation, _ end: SentMessage.End) {
    guard run.swarm.isStrict, message.kind == .token, let core = run.server.core else { return }
    let ends = core.history(of: message.id).filter { $0.isEnd && $0 != .nacked }
    if ends.count > 1 { fail("\(message.id) came to \(ends.count) ends: \(ends.map(\.name))") }
    guard end == .acked, !message.isDryRun else { return }
    if ends.isEmpty { fail("\(message.id) was acked and came to no end") }
    let taken = message.receivers.contains { message.takenCount($0) > 0 }
    if ends.first == .delivered, !taken { fail("\(message.id) counts as delivered and no app took it") }
    // A rule may end what is on its way to its device; the ack that comes then changes nothing.
    if let state = ends.first, state == .droppedOffline, taken {
      fail("\(message.id) counts as \(state.name) and an app took it")
    }
  }

  // MARK: Upstream

  private func check(_ message: SentUpstream, _ run: Simulation, _ settledAt: Int64) {
    guard let end = message.end else {
      return fail("upstream \(message.id) was neither acked nor refused nor given up")
    }
    switch end {
    case .acked where message.successCount == 0:
      if let ttl = message.ttl {
        let range = run.clock.wallRange(from: message.at, to: settledAt)
        if range.upperBound >= range.lowerBound + Int64(ttl) * 1_000 { return }
      }
      fail("LOST: upstream \(message.id) was acked and no app server was shown it")
    case .refused("INVALID_JSON")
    where run.registration(ofToken: message.token)?.leftAt == nil
      && run.registration(ofToken: message.token)?.token == message.token:
      fail("upstream \(message.id) was refused as if its registration were not there")
    case .refused(let code) where message.attempts == 1 && code != "SERVICE_UNAVAILABLE":
      if message.successCount > 0, code != "TTL_EXCEEDED" {
        fail("upstream \(message.id) was refused as \(code) and shown")
      }
    default: break
    }
  }

  // MARK: All of them

  private func checkCounts(_ run: Simulation) {
    guard run.swarm.isStrict else { return }
    let counts = run.server.countsNow
    if counts.accepted != counts.ends {
      fail("\(counts.accepted) messages were accepted and \(counts.ends) came to an end: \(counts)")
    }
  }
}
