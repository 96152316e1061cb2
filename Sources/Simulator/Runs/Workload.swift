import Bytes
import PushModel
import Seams

/// Who sends what and when, while faults happen.
final class Workload {
  private unowned let run: Simulation
  private let end: Int64
  private var chance: SeededChance

  init(_ run: Simulation, until end: Int64) {
    self.run = run
    self.end = end
    chance = run.world.chance("workload")
  }

  func begin() {
    let start = run.world.now
    let span = Double(end - start)
    let isBurst = run.swarm.features.contains(.bursts)
    var moment = start
    for number in 0..<run.swarm.messages {
      if !isBurst || chance.percent(10) {
        moment = start + Int64(span * Double(chance.next() >> 11) / Double(1 << 53))
      }
      run.world.at(moment) { [self] in send(number) }
    }
    for number in 0..<run.swarm.upstreamMessages {
      run.world.at(start + Int64(span * Double(chance.next() >> 11) / Double(1 << 53))) { [self] in
        sendUpstream(number)
      }
    }
    let changes = chance.within(1...4)
    for _ in 0..<changes {
      run.world.at(start + Int64(span * Double(chance.next() >> 11) / Double(1 << 53))) { [self] in change() }
    }
  }

  private func change() {
    let registration = chance.pick(run.registrations)
    if run.swarm.features.contains(.renewToken), chance.percent(60) {
      run.renew(registration)
    } else if run.swarm.features.contains(.unregister), chance.percent(50) {
      run.unregister(registration)
    }
  }

  // MARK: Downstream

  private func send(_ number: Int) {
    let features = run.swarm.features
    let id = "m-\(number)"
    var kind = SentMessage.Kind.token
    if chance.percent(40) {
      let kinds: [(SentMessage.Kind, Feature)] = [(.topic, .topics), (.group, .groups), (.user, .users)]
      let possible = kinds.filter { features.contains($0.1) }.map(\.0)
      if !possible.isEmpty { kind = chance.pick(possible) }
    }
    if kind == .group, run.groups.isEmpty { kind = .token }
    let (address, receivers) = target(kind)
    var ttl: Int?
    if features.contains(.nowOrNever), chance.percent(15) { ttl = 0 }
    if features.contains(.shortLife), chance.percent(30) { ttl = chance.within(1...30) }
    let collapse = features.contains(.collapseKeys) && chance.percent(40) ? "key-\(chance.below(6))" : nil
    let isDryRun = features.contains(.dryRun) && chance.percent(8)
    let wantsReceipt = features.contains(.receipts) && kind == .token && chance.percent(40)
    var wrong: SentMessage.Wrong?
    if features.contains(.invalid), chance.percent(8) {
      wrong = chance.pick([.badToken, .unknownToken, .tooBig, .badTTL])
    }
    let sent = SentMessage(
      number: number, id: id, kind: kind, receivers: receivers, ttl: ttl, collapse: collapse,
      wantsReceipt: wantsReceipt, isDryRun: isDryRun, wrong: wrong, at: run.world.now)
    var message = DownstreamMessage(.to(address), messageID: id, data: ["id": id, "n": String(number)])
    message.timeToLive = ttl
    message.collapseKey = collapse
    message.dryRun = isDryRun
    message.receiptRequested = wantsReceipt
    if chance.percent(30) { message.priority = .high }
    if features.contains(.users), chance.percent(30) {
      message.notification = NotificationContent(title: "title", body: "body")
      message.notification?.badge = "+1"
    }
    if features.contains(.bigBodies), chance.percent(30) {
      message.data["p"] = String(repeating: "é", count: chance.within(1...1_900))
    }
    apply(wrong, to: &message)
    run.world.say("sends", "\(id) \(kind) to \(receivers) ttl \(ttl ?? -1) \(collapse ?? "")")
    run.ledger.add(sent)
    Self.submit(message, of: sent, by: chance.pick(run.appServers))
  }

  private static func submit(_ message: DownstreamMessage, of sent: SentMessage, by server: SimAppServer) {
    var json = ByteWriter()
    message.write(to: &json)
    server.send(sent, json.take())
  }

  /// Sends one message that the books know.
  static func submit(_ sent: SentMessage, to token: String, by server: SimAppServer, in run: Simulation) {
    var message = DownstreamMessage(
      .to(token), messageID: sent.id, data: ["id": sent.id, "n": String(sent.number)])
    message.timeToLive = sent.ttl
    submit(message, of: sent, by: server)
  }

  private func target(_ kind: SentMessage.Kind) -> (String, [Int]) {
    switch kind {
    case .topic:
      let topic = chance.pick(["news", "sport"])
      return ("/topics/\(topic)", run.registrations.filter { $0.topics.contains(topic) }.map(\.number))
    case .group:
      let group = chance.pick(run.groups)
      return (group.key, group.members)
    case .user:
      let user = "user-\(chance.below(3))"
      return ("/users/\(user)", run.registrations.filter { $0.user == user }.map(\.number))
    case .token:
      let registration = chance.pick(run.registrations)
      // An old token now and then, where there is one.
      return (chance.pick(registration.tokens), [registration.number])
    }
  }

  private func apply(_ wrong: SentMessage.Wrong?, to message: inout DownstreamMessage) {
    switch wrong {
    case nil: break
    case .badToken: message.address = .to("this is no token")
    case .unknownToken: message.address = .to(run.newToken())
    case .tooBig: message.data["p"] = String(repeating: "x", count: 5_000)
    case .badTTL: message.timeToLive = 99_999_999
    }
  }

  // MARK: Upstream

  private func sendUpstream(_ number: Int) {
    let registration = chance.pick(run.registrations)
    guard registration.leftAt == nil, !registration.isRenewing else { return }
    var ttl: Int?
    if run.swarm.features.contains(.nowOrNever), chance.percent(15) { ttl = 0 }
    if run.swarm.features.contains(.shortLife), chance.percent(20) { ttl = chance.within(1...30) }
    let sent = SentUpstream(
      id: "u-\(number)", device: registration.device, token: registration.token, ttl: ttl, at: run.world.now)
    run.ledger.add(sent)
    let padding = run.swarm.features.contains(.bigBodies) && chance.percent(30) ? chance.within(1...3_500) : 0
    run.devices[registration.device].send(sent, token: registration.token, padding: padding)
  }
}
