import Connections
import DeliveryCore
import PushModel
import Seams

/// A sender's side on the thread of curl: which message is posted when, and how each ends.
///
/// Touched on that thread alone.
final class HTTPEngine: CurlDelegate {
  private final class Job {
    let item: SendQueue.Item
    let submitted: Moment
    var attempts = 0
    var failures = 0
    var lastNack: Nack?
    var hasNewToken = false
    var isOver = false

    init(_ item: SendQueue.Item, _ now: Moment) {
      self.item = item
      submitted = now
    }
  }

  private enum Token {
    /// Not needed, or given by the caller.
    case fixed(String)
    case missing
    case fetching(CurlTransfer, old: String?)
    case granted(String, renewAt: Moment)
  }

  private let configuration: HTTPSender.Configuration
  private let rules: RetryRules
  private let queue: SendQueue
  private let commands: Guarded<[HTTPSender.Command]>
  private let account: ServiceAccount?
  private let url: String
  private let isV1: Bool
  private var token: Token
  private var tokenRetry: Moment?
  private var tokenFailures = 0
  private var ready: [Job] = []
  private var waiting: [(due: Moment, job: Job)] = []
  private var running: [ObjectIdentifier: Job] = [:]
  private var chance = SeededChance(seed: .random(in: .min ... .max))
  private var closing: Moment?
  private let ended: @Sendable () -> Void

  private let time: any TimeSource

  init(
    _ configuration: HTTPSender.Configuration, time: any TimeSource, queue: SendQueue,
    commands: Guarded<[HTTPSender.Command]>,
    ended: @escaping @Sendable () -> Void
  ) {
    self.configuration = configuration
    self.time = time
    self.queue = queue
    self.commands = commands
    self.ended = ended
    rules = configuration.retry.rules
    let host = configuration.host.contains(":") ? "[\(configuration.host)]" : configuration.host
    let origin = "https://\(host):\(configuration.port)"
    switch configuration.access {
    case .legacy(let key):
      (url, isV1, account, token) = (origin + "/fcm/send", false, nil, .fixed("key=" + key))
    case .serviceAccount(let account):
      (url, isV1) = (origin + "/v1/projects/\(account.projectID)/messages:send?prettyPrint=false", true)
      (self.account, token) = (account, .missing)
    case .accessToken(let text, let project):
      (url, isV1) = (origin + "/v1/projects/\(project)/messages:send?prettyPrint=false", true)
      (account, token) = (nil, .fixed("Bearer " + text))
    }
  }

  // MARK: Turns

  func turn(_ thread: CurlThread) -> Moment? {
    let now = thread.time.moment
    takeCommands(thread, now)
    wakeWaiting(now)
    renewToken(thread, now)
    take(now)
    endOverdue(now)
    begin(thread, now)
    if let closing, queue.isEmpty, ready.isEmpty, waiting.isEmpty, running.isEmpty || closing <= now {
      finishAll(thread)
      return nil
    }
    return [waiting.map(\.due).min(), tokenRetry, closing].compactMap { $0 }.min()
  }

  private func takeCommands(_ thread: CurlThread, _ now: Moment) {
    let batch = commands.withLock { commands in
      let batch = commands
      commands = []
      return batch
    }
    for command in batch {
      switch command {
      case .close(let patience): closing = min(closing ?? now + patience, now + patience)
      case .cancel(let number):
        cancel(thread, now) { if case .call(number, _) = $0 { true } else { false } }
      case .takeBack(let channel):
        cancel(thread, now) { if case .bulk(let other) = $0 { other === channel } else { false } }
      }
    }
    if let closing, closing <= now {
      for item in queue.close() {
        item.reply.answer(item.message.id, .failure(SendError(code: .closed, messageID: item.message.id)))
      }
      for job in ready + waiting.map(\.job) { end(job, .closed, now) }
      ready = []
      waiting = []
      for (id, job) in running {
        end(job, .closed, now)
        running[id] = nil
      }
    }
  }

  private func cancel(_ thread: CurlThread, _ now: Moment, where isMeant: (Reply) -> Bool) {
    for job in ready + waiting.map(\.job) + running.values where isMeant(job.item.reply) {
      end(job, .cancelled, now)
    }
    ready.removeAll(where: \.isOver)
    waiting.removeAll(where: \.job.isOver)
  }

  private func finishAll(_ thread: CurlThread) {
    for item in queue.close() {
      item.reply.answer(item.message.id, .failure(SendError(code: .closed, messageID: item.message.id)))
    }
    thread.stop()
    ended()
  }

  /// Not more than is on the way at a time is taken from the callers.
  private func take(_ now: Moment) {
    let room = configuration.mode.requestsMax - running.count - ready.count
    var items: [SendQueue.Item] = []
    queue.take(max(0, room), into: &items)
    for item in items {
      if case .bulk(let channel) = item.reply, channel.isAbandoned { continue }
      ready.append(Job(item, now))
    }
  }

  /// What waited for a token or a place for too long.
  private func endOverdue(_ now: Moment) {
    guard ready.contains(where: { $0.submitted + rules.totalTimeout <= now }) else { return }
    for job in ready where job.submitted + rules.totalTimeout <= now {
      end(job, .deadline(job.lastNack), now)
    }
    ready.removeAll(where: \.isOver)
  }

  private func begin(_ thread: CurlThread, _ now: Moment) {
    guard let authorization else { return }
    var next = 0
    while next < ready.count, running.count < configuration.mode.requestsMax {
      let job = ready[next]
      next += 1
      let left = job.submitted + rules.totalTimeout - now
      guard left > .zero else {
        end(job, .deadline(job.lastNack), now)
        continue
      }
      var headers = ["Authorization: " + authorization, "Content-Type: application/json", "Expect:"]
      if configuration.sendsMessageID { headers.append("X-Weir-Message-Id: " + job.item.message.id) }
      let request = CurlRequest(url: url, headers: headers, body: job.item.message.stanza)
      job.attempts += 1
      guard let transfer = thread.begin(request, timeout: min(left, configuration.requestTimeout)) else {
        end(job, .streamLost, now)
        continue
      }
      running[ObjectIdentifier(transfer)] = job
    }
    ready.removeFirst(next)
  }

  private func wakeWaiting(_ now: Moment) {
    guard waiting.contains(where: { $0.due <= now }) else { return }
    ready.insert(contentsOf: waiting.filter { $0.due <= now }.map(\.job), at: 0)
    waiting.removeAll { $0.due <= now }
  }

  // MARK: Answers

  func finished(_ transfer: CurlTransfer, _ result: Result<HTTPAnswer, CurlFault>) {
    let now = time.moment
    if case .fetching(let mine, let old) = token, mine === transfer {
      tokenCame(result, old: old, now)
      return
    }
    guard let job = running.removeValue(forKey: ObjectIdentifier(transfer)), !job.isOver else { return }
    switch result {
    case .failure(let fault): failed(job, fault, now)
    case .success(let answer):
      let asked = RetryAfter.wait(answer.retryAfter, date: answer.date, now: time.wall.ms / 1_000)
      switch isV1 ? answer.meaningOfV1() : answer.meaningOfLegacy() {
      case .acked(let id): end(job, .acked(registrationID: id), now)
      case .refused(let nack):
        refused(job, nack, asked, isQuota: answer.status == 429, now)
      case .tokenExpired(let nack): expired(job, nack, now)
      }
    }
  }

  private func refused(_ job: Job, _ nack: Nack, _ asked: Duration?, isQuota: Bool, _ now: Moment) {
    job.failures += 1
    job.lastNack = nack
    let kind = RetryRules.retryClass(code: nack.code)
    guard var wait = rules.wait(after: kind, failures: job.failures, using: &chance) else {
      end(job, .nacked(nack), now)
      return
    }
    if let asked {
      // What the server says counts, with a little chance so that not all come at the same moment.
      wait = asked + .milliseconds(Int64.random(in: 0...1_000, using: &chance))
    } else if isQuota {
      // A quota is full again in the minute that follows.
      wait = max(wait, .seconds(60) + .milliseconds(Int64.random(in: 0...5_000, using: &chance)))
    }
    guard now + wait < job.submitted + rules.totalTimeout else {
      var last = nack
      if let asked { last.text += " (retry after \(asked.components.seconds) s)" }
      end(job, .nacked(last), now)
      return
    }
    waiting.append((now + wait, job))
  }

  private func failed(_ job: Job, _ fault: CurlFault, _ now: Moment) {
    let mayRepeat: Bool
    let ending: SendOutcome.End
    switch fault.kind {
    case .timedOut: (mayRepeat, ending) = (rules.repeatsOverdue, .ackOverdue)
    case .connect, .lost: (mayRepeat, ending) = (rules.repeatsAfterClose, .streamLost)
    case .trust: (mayRepeat, ending) = (false, .streamLost)
    }
    job.failures += 1
    guard mayRepeat, let wait = rules.wait(after: .busy, failures: job.failures, using: &chance) else {
      end(job, ending, now, detail: fault.detail)
      return
    }
    guard now + wait < job.submitted + rules.totalTimeout else {
      end(job, .deadline(job.lastNack), now, detail: fault.detail)
      return
    }
    waiting.append((now + wait, job))
  }

  private func end(_ job: Job, _ end: SendOutcome.End, _ now: Moment, detail: String = "") {
    guard !job.isOver else { return }
    job.isOver = true
    let outcome = SendOutcome(end: end, attempts: job.attempts, latency: now - job.submitted)
    var result = outcome.result(job.item.message.id)
    if case .failure(var error) = result, error.detail.isEmpty, !detail.isEmpty {
      error.detail = detail
      result = .failure(error)
    }
    job.item.reply.answer(job.item.message.id, result)
  }

  // MARK: Access tokens

  /// The value of the header; nil while there is no token.
  private var authorization: String? {
    switch token {
    case .fixed(let text): text
    case .granted(let text, _): "Bearer " + text
    case .fetching(_, let old): old.map { "Bearer " + $0 }
    case .missing: nil
    }
  }

  /// A token that was good is asked for anew, once for each message.
  private func expired(_ job: Job, _ nack: Nack, _ now: Moment) {
    guard account != nil, !job.hasNewToken else {
      end(job, .nacked(nack), now)
      return
    }
    job.hasNewToken = true
    job.lastNack = nack
    switch token {
    case .granted: token = .missing
    case .fetching(let transfer, _): token = .fetching(transfer, old: nil)
    case .fixed, .missing: break
    }
    ready.insert(job, at: 0)
  }

  /// Asks for a token when there is none, and in time before one ends.
  private func renewToken(_ thread: CurlThread, _ now: Moment) {
    guard let account else { return }
    if let tokenRetry, tokenRetry > now { return }
    let old: String?
    switch token {
    case .fixed, .fetching: return
    case .missing:
      // Asked for when there is something to send.
      guard !ready.isEmpty || !queue.isEmpty else { return }
      old = nil
    case .granted(let text, let renewAt):
      guard renewAt <= now else { return }
      old = text
    }
    tokenRetry = nil
    guard let body = try? account.tokenRequest(at: thread.time.wall.ms / 1_000) else {
      refuseAll("the service account's key cannot sign", now)
      return
    }
    let request = CurlRequest(
      url: account.tokenURI, headers: ["Content-Type: application/x-www-form-urlencoded", "Expect:"],
      body: body)
    if let transfer = thread.begin(request, timeout: configuration.requestTimeout) {
      token = .fetching(transfer, old: old)
    }
  }

  private func tokenCame(_ result: Result<HTTPAnswer, CurlFault>, old: String?, _ now: Moment) {
    // An old token is used on while a new one cannot be had; the server says when it is over.
    token = old.map { .granted($0, renewAt: now + .seconds(10)) } ?? .missing
    switch result {
    case .success(let answer) where answer.status == 200:
      guard let granted = GrantedToken(answer.body) else {
        refuseAll("the answer of the token endpoint holds no token", now)
        return
      }
      tokenFailures = 0
      // Five minutes before its end, or at two thirds of a short life.
      let early = max(granted.lifetime - .seconds(300), granted.lifetime * 2 / 3)
      token = .granted(granted.text, renewAt: now + early)
    case .success(let answer) where answer.status < 500 && answer.status != 429:
      refuseAll(GrantedToken.refusal(answer.body, status: answer.status), now)
    case .success, .failure:
      tokenFailures += 1
      guard let wait = rules.wait(after: .busy, failures: tokenFailures, using: &chance) else {
        var detail = "no access token"
        if case .failure(let fault) = result { detail += ": " + fault.detail }
        tokenFailures = 0
        refuseAll(detail, now)
        return
      }
      tokenRetry = now + wait
    }
  }

  /// What waits for a token that is not given.
  private func refuseAll(_ detail: String, _ now: Moment) {
    guard authorization == nil else { return }
    let nack = Nack(code: NackCode.authenticationFailed.rawValue, text: detail)
    for job in ready { end(job, .nacked(nack), now) }
    ready = []
  }
}

extension StreamClient.RetryPolicy {
  /// The same rules as a stream's.
  var rules: RetryRules {
    RetryRules(
      triesMax: triesMax, waitMin: waitMin, waitMax: waitMax, rateLimitedWaitMin: rateLimitedWaitMin,
      rateLimitedWaitMax: rateLimitedWaitMax, totalTimeout: totalTimeout, repeatsOverdue: repeatsOverdue,
      repeatsAfterClose: resendsAfterLoss)
  }
}
