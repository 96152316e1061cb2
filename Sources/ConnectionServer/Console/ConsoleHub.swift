import DeliveryCore
import EventLoops
import JSONCore
import PushModel
import Seams
import Stores
import WebSocketCore

/// The pages of the console that watch, on the loop of the administration listener.
///
/// Once a second each loop is asked for at most ``ConsoleSteps/stepsMax`` steps a page, counters are read where they
/// are, and each page is sent one message; everything but the sending happens in a task. While no page watches there is
/// no timer, and messages leave no trace here.
final class ConsoleHub {
  /// Pages at once; the next one is answered 503.
  static let feedsMax = 16
  /// Topic messages of so long ago are known to a filter by topic.
  private static let fanoutsBack: Int64 = 3_600_000

  private unowned let worker: LoopWorker
  /// Of the seconds; a test makes them short.
  var period: Duration
  private(set) var feeds: [ObjectIdentifier: ConsoleFeed] = [:]
  private var figures = ConsoleFigures()
  private var timer: LoopTimer?
  private var isGathering = false
  /// Seconds sent so far, for tests.
  private(set) var rounds = 0

  init(worker: LoopWorker, period: Duration = .seconds(1)) {
    self.worker = worker
    self.period = period
  }

  var isFull: Bool { feeds.count >= Self.feedsMax }

  /// A connection that has not shown its key yet counts too, so that the bound holds.
  func add(_ feed: ConsoleFeed) { feeds[ObjectIdentifier(feed)] = feed }

  /// A page has shown its key.
  func begin(_ feed: ConsoleFeed) {
    worker.context.watch.begin()
    if timer == nil { tick() }
  }

  func remove(_ feed: ConsoleFeed, wasWatching: Bool) {
    guard feeds.removeValue(forKey: ObjectIdentifier(feed)) != nil, wasWatching else { return }
    worker.context.watch.end()
    guard !feeds.values.contains(where: \.isWatching) else { return }
    timer?.cancel()
    timer = nil
    figures = ConsoleFigures()
    worker.context.onEveryShard { if !$0.watch.isOn { $0.tail.forget() } }
  }

  func closeAll() {
    for feed in Array(feeds.values) { feed.close(.goingAway) }
  }

  private func tick() {
    timer?.cancel()
    timer = worker.loop.after(period) { [weak self] in self?.tick() }
    guard !isGathering else { return }
    // A page that has not read the second before is passed over.
    let ready = feeds.values.filter { $0.takesMore() }
    guard !ready.isEmpty else { return }
    isGathering = true
    let me = Handover(self)
    let pages = Handover(ready)
    let loop = worker.loop
    Self.gather(ready.map(\.filter), figures, worker.context) { round in
      loop.submit { me.value.gathered(pages.value, round) }
    }
  }

  /// Gathers apart from the loops, and hands over what was found.
  private static func gather(
    _ filters: [ConsoleFilter], _ figures: ConsoleFigures, _ context: ServerContext,
    _ done: @escaping @Sendable (Round) -> Void
  ) {
    Task { done(await ConsoleHub.round(filters, figures, context)) }
  }

  /// What one second brings: a text for each filter.
  private struct Round: Sendable {
    var texts: [[UInt8]]
    var figures: ConsoleFigures
  }

  private static func round(
    _ filters: [ConsoleFilter], _ earlier: ConsoleFigures, _ context: ServerContext
  ) async -> Round {
    var figures = earlier
    let shown = await figures.next(context)
    let texts = await gather(filters, context).map { one in
      JSONValue.object([
        .init("figures", shown), .init("steps", .array(one.steps)), .init("left_out", .number(one.leftOut)),
        .init("every", .number(Int64(clamping: one.every))),
      ]).bytes
    }
    return Round(texts: texts, figures: figures)
  }

  private func gathered(_ pages: [ConsoleFeed], _ round: Round) {
    isGathering = false
    rounds += 1
    // Nobody is left: the next one starts anew.
    if timer != nil { figures = round.figures }
    for (page, text) in zip(pages, round.texts) { page.send(text) }
  }

  /// The steps that each filter chooses, of all loops, with the names that any of them knows.
  private static func gather(
    _ filters: [ConsoleFilter], _ context: ServerContext
  ) async -> [(steps: [JSONValue], leftOut: Int, every: UInt64)] {
    var filters = filters
    if filters.contains(where: { $0.topic != nil }) {
      let since = WallTime(ms: context.time.wall.ms - fanoutsBack)
      let known = (try? await context.store.fanouts(since: since)) ?? []
      for index in filters.indices {
        guard let topic = filters[index].topic else { continue }
        filters[index].fanouts = Set(known.filter { $0.audience.text == topic }.map(\.key))
      }
    }
    let asked = filters
    let found = await context.gather { $0.consoleSteps(asked) }
    var whole = filters.map { _ in ConsoleSteps() }
    for shard in found {
      for (index, steps) in shard.enumerated() { whole[index].add(steps) }
    }
    let keys = Set(whole.flatMap { $0.events.map(\.key) })
    var names: [MessageKey: MessageTail.Name] = [:]
    if !keys.isEmpty {
      for known in await context.gather({ shard in shard.tail.names.filter { keys.contains($0.key) } }) {
        // The sender's loop knows the message's id, the device's loop may know less.
        names.merge(known) { $0.messageID.isEmpty ? $1 : $0 }
      }
    }
    return whole.map {
      let shown = $0.shown(names)
      return (shown.steps, shown.leftOut, $0.every)
    }
  }
}
