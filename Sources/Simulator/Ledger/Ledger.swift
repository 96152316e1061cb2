import PushModel
import Seams

/// The books of a run: what both ends saw, held against what the contract allows.
///
/// It knows nothing of the server's working. What an app server was told and what a device's app was shown is
/// compared message by message; the server's own inspection is compared with both at the end.
final class Ledger {
  private unowned let run: Simulation
  private(set) var failures: [String] = []
  private(set) var sent: [SentMessage] = []
  private var byID: [String: SentMessage] = [:]
  private(set) var upstream: [SentUpstream] = []
  private var upstreamByID: [String: SentUpstream] = [:]
  private(set) var takenCount = 0
  private(set) var failedShows = 0
  private(set) var receiptCount = 0
  private(set) var ackedCount = 0

  /// A message may be handed to its device so long after its time to live ran out: a loop that was paused between
  /// taking it and handing it on does not look again.
  static let lateMs: Int64 = 5_000
  /// A topic message with a time to live of 0 looks for connected subscribers for so long.
  static let nowOrNeverTopicMs: Int64 = 60_000

  /// A message with a time to live of 0 is carried to another node for so long.
  static let carriedOverMs: Int64 = 5_000

  init(_ run: Simulation) { self.run = run }

  func fail(_ text: String) {
    run.world.say("FAILURE", text)
    if failures.count < 20 { failures.append("at \(run.world.now / 1_000_000) ms: \(text)") }
  }

  // MARK: Downstream

  func add(_ message: SentMessage) {
    sent.append(message)
    byID[message.id] = message
  }

  func ended(_ message: SentMessage, _ end: SentMessage.End, attempts: Int) {
    run.world.say("ended", "\(message.id) \(end) after \(attempts)")
    guard message.end == nil else { return fail("\(message.id) ended twice: \(end)") }
    message.end = end
    message.attempts = attempts
    message.endedAt = run.world.now
    if end == .acked { ackedCount += 1 }
  }

  func shown(_ message: DeviceDelivery.Message, on device: SimDevice, success: Bool) {
    let world = run.world
    guard let id = message.data["id"], let sent = byID[id] else {
      return fail("device \(device.number) was shown a message that nobody sent")
    }
    world.say("shown", "\(id) on \(device.number) \(success)")
    guard let registration = run.registration(ofToken: message.token) else {
      return fail("\(id) carries a token that was never made")
    }
    if registration.device != device.number {
      fail("\(id) for device \(registration.device) came to \(device.number)")
    }
    if !sent.receivers.contains(registration.number) {
      fail("\(id) came to registration \(registration.number), which it was not for")
    }
    if registration.app != message.category { fail("\(id) came to app \(message.category)") }
    if sent.isDryRun { fail("\(id) was a dry run and was delivered") }
    if sent.wrong != nil { fail("\(id) was not valid and was delivered") }
    if message.data["n"] != String(sent.number) { fail("\(id) came with other data") }
    checkTime(sent, message)
    if success {
      // A renewed registration is another one to a topic, group or user message that is under way.
      let allowed = sent.kind == .token ? 1 : registration.tokens.count
      if sent.takenCount(registration.number, by: device.incarnation) >= allowed {
        fail("\(id) was shown to the app again after it was handled")
      }
      takenCount += 1
    } else {
      failedShows += 1
    }
    sent.shows[registration.number, default: []].append(
      .init(at: world.now, success: success, process: device.incarnation))
  }

  private func checkTime(_ sent: SentMessage, _ message: DeviceDelivery.Message) {
    let clock = run.clock
    // When the server could first have written it, by the server's wall clock.
    let written = clock.wallRange(from: run.network.stamp, to: run.network.stamp).lowerBound
    var expires = message.sentTime + message.timeToLive * 1_000
    if sent.kind == .topic, message.timeToLive == 0 { expires += Self.nowOrNeverTopicMs }
    // To the node that has its device it may take a little longer.
    if sent.kind != .topic, message.timeToLive == 0, run.cluster != nil { expires += Self.carriedOverMs }
    if written > expires + Self.lateMs {
      fail("\(sent.id) was written \(written - expires) ms after its time to live ran out")
    }
    let possible = clock.wallRange(from: sent.at, to: run.world.now)
    let error = 1 + run.clockErrorMs
    if message.sentTime < possible.lowerBound - error || message.sentTime > possible.upperBound + error {
      fail("\(sent.id) carries a time at which it was not sent")
    }
    if message.timeToLive != Int64(sent.ttl ?? 2_419_200) { fail("\(sent.id) carries another time to live") }
  }

  func receipt(_ receipt: ServerPayload.Receipt, by server: Int, success: Bool) {
    guard let sent = byID[receipt.originalMessageID] else {
      return fail("a receipt for a message that nobody sent")
    }
    run.world.say("receipt", "\(sent.id) to \(server)")
    if !sent.wantsReceipt { fail("a receipt for \(sent.id), which asked for none") }
    if !sent.receivers.contains(where: { sent.takenCount($0) > 0 }) {
      fail("a receipt for \(sent.id), which no app took")
    }
    if receipt.status != "MESSAGE_SENT_TO_DEVICE" { fail("a receipt with the status \(receipt.status)") }
    if sent.receipts[server, default: 0] > 0 {
      fail("a second receipt for \(sent.id) was shown to one app server")
    }
    if success { sent.receipts[server, default: 0] += 1 }
    sent.receiptCount += 1
    receiptCount += 1
  }

  // MARK: Upstream

  func add(_ message: SentUpstream) {
    upstream.append(message)
    upstreamByID[message.id] = message
  }

  func upstreamEnded(_ message: SentUpstream, _ end: SentMessage.End, attempts: Int) {
    run.world.say("upstream ended", "\(message.id) \(end)")
    guard message.end == nil else { return fail("upstream \(message.id) ended twice") }
    message.end = end
    message.attempts = attempts
  }

  func upstreamShown(_ message: ServerPayload.Upstream, by server: Int, success: Bool) {
    guard let id = message.data["id"], let sent = upstreamByID[id] else {
      return fail("an upstream message that nobody sent")
    }
    run.world.say("upstream shown", "\(id) to \(server) \(success)")
    if run.registration(ofToken: message.from)?.device != sent.device {
      fail("upstream \(id) came in the name of another device")
    }
    if sent.shows[server, default: 0] > 0 {
      fail("upstream \(id) was shown again to one app server after it was handled")
    }
    if success {
      sent.shows[server, default: 0] += 1
      sent.successCount += 1
    }
  }
}
