import PushModel
import Seams
import Stores

/// A message to a topic or a condition until it has been written down.
///
/// `@unchecked Sendable`: `job` is a constant, `origins` is touched only by the shard that is home to all fan-outs,
/// which gets the object through a mailbox.
final class FanoutSend: @unchecked Sendable {
  let job: FanoutJob
  /// Whom to answer: the stream it came on, and streams where it came again.
  var origins: [Origin]

  init(_ job: FanoutJob, origin: Origin) {
    self.job = job
    origins = [origin]
  }
}

/// The fan-outs of this node that are not done: which are next, and how many each sender has.
///
/// All are at home on one shard, so one slice is out at a time and everything else gets its turn between two.
struct FanoutDesk {
  struct Run: Sendable, Equatable {
    var number: MessageNumber
    var sender: SenderID
  }

  /// With the store, not yet durable.
  private(set) var beginning: [MessageKey: FanoutSend] = [:]
  private var waiting: [Run] = []
  /// With the store now.
  private var out: [Run] = []
  private var counts: [SenderID: Int] = [:]
  private var retryAt: Moment?
  /// Nothing is begun any more: what is not done goes on when the server starts again.
  private(set) var isPaused = false

  /// Fan-outs of a sender that are not done.
  func count(of sender: SenderID) -> Int { counts[sender] ?? 0 }
  var count: Int { counts.values.reduce(0, +) }

  /// The job waits here for its next slice, or one is out.
  func knows(_ job: MessageNumber) -> Bool {
    waiting.contains { $0.number == job } || out.contains { $0.number == job }
  }

  /// The store is asked for something.
  var isBusy: Bool { !beginning.isEmpty || !out.isEmpty }

  mutating func pause() { isPaused = true }

  mutating func begin(_ send: FanoutSend) {
    beginning[send.job.key] = send
    counts[send.job.sender, default: 0] += 1
  }

  /// The job is durable.
  mutating func begun(_ send: FanoutSend) {
    beginning[send.job.key] = nil
    waiting.append(Run(number: send.job.number, sender: send.job.sender))
  }

  /// The job could not be written down.
  mutating func refused(_ send: FanoutSend) {
    beginning[send.job.key] = nil
    uncount(send.job.sender)
  }

  /// A job of an earlier run goes on.
  mutating func resume(_ run: Run) {
    counts[run.sender, default: 0] += 1
    waiting.append(run)
  }

  private mutating func uncount(_ sender: SenderID) {
    let left = (counts[sender] ?? 0) - 1
    counts[sender] = left > 0 ? left : nil
  }

  /// When the next slice may go; nil while one is out or nothing waits.
  func nextDue(_ now: Moment) -> Moment? {
    guard out.isEmpty, !waiting.isEmpty, !isPaused else { return nil }
    return retryAt ?? now
  }

  /// Takes the jobs that go a step further together, at most `max`.
  mutating func takeNext(max: Int) -> [Run] {
    retryAt = nil
    out = Array(waiting.prefix(max))
    waiting.removeFirst(out.count)
    return out
  }

  /// The slice that was out is durable; those not done get in line again.
  mutating func advanced(done: Set<MessageNumber>) {
    for run in out {
      if done.contains(run.number) { uncount(run.sender) } else { waiting.append(run) }
    }
    out = []
  }

  /// The store did not take the slice: the same jobs are next again, from `moment` on.
  mutating func failed(retryAt moment: Moment) {
    waiting.insert(contentsOf: out, at: 0)
    out = []
    retryAt = moment
  }
}
