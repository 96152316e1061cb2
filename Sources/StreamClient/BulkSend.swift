import Connections
import Synchronization

/// How one message of a bulk send ended.
public struct BulkOutcome: Sendable {
  /// The message's id; empty for one that was refused before it had one.
  public var messageID: String
  /// Its ack, or why there is none.
  public var result: Result<Ack, SendError>

  /// Makes an outcome; test doubles do.
  public init(messageID: String, result: Result<Ack, SendError>) {
    self.messageID = messageID
    self.result = result
  }
}

/// The outcomes of a bulk send, in the order in which the messages ended.
///
/// Iterating starts the send; messages are taken from the source only as outcomes are taken from here, so the
/// memory used is bounded. Ends when every message of the source has ended; throws what the source throws, after
/// the outcomes of what came before. A source is sent once: iterate once. When the iterator goes away or its
/// task is cancelled, what has not ended is taken back.
public struct BulkSend<Source: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Source.Element == PushMessage {
  /// One outcome a message.
  public typealias Element = BulkOutcome

  let target: any MessageTarget
  let source: Source
  let creditMax: Int

  /// Starts the send.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(BulkPump(target: target, source: source, creditMax: creditMax))
  }

  /// Takes outcomes one by one; suspends once a batch of them.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private let pump: BulkPump<Source>
    private var batch: [BulkOutcome] = []
    private var next = 0

    init(_ pump: BulkPump<Source>) { self.pump = pump }

    /// The next outcome; nil when all messages have ended or the task was cancelled.
    public mutating func next() async throws -> BulkOutcome? {
      if next == batch.count {
        pump.channel.taken(batch.count)
        next = 0
        batch = await pump.channel.outcomes.receive()
        if batch.isEmpty {
          if let failure = pump.channel.failure { throw failure }
          return nil
        }
      }
      defer { next += 1 }
      return batch[next]
    }

    /// All outcomes that are there, at least one; nil as for .
    ///
    /// `next()``. For those who count.
    public mutating func nextBatch() async throws -> [BulkOutcome]? {
      if next < batch.count {
        defer { next = batch.count }
        return Array(batch[next...])
      }
      guard let first = try await next() else { return nil }
      _ = first
      next = batch.count
      return batch
    }
  }
}

/// Who takes the messages of a bulk send: a stream, or a sender over HTTP.
protocol MessageTarget: AnyObject, Sendable {
  func makeEncoder() -> MessageEncoder
  func enqueue(_ item: SendQueue.Item)
  /// Takes back what has not ended of a bulk send whose outcomes nobody wants.
  func takeBack(_ channel: BulkChannel)
}

/// Reads the source and hands over what it gives; ends with the iterator that owns it.
final class BulkPump<Source: AsyncSequence & Sendable>: Sendable where Source.Element == PushMessage {
  let channel: BulkChannel
  private let target: any MessageTarget
  private let task: Task<Void, Never>

  init(target: any MessageTarget, source: Source, creditMax: Int) {
    let channel = BulkChannel(creditMax: creditMax)
    self.channel = channel
    self.target = target
    task = Task { await Self.run(target, source, channel) }
  }

  deinit {
    task.cancel()
    channel.abandon()
    target.takeBack(channel)
  }

  private static func run(_ target: any MessageTarget, _ source: Source, _ channel: BulkChannel) async {
    var encoder = target.makeEncoder()
    do {
      for try await message in source {
        guard await channel.admit() else { return }
        do throws(SendError) {
          let encoded = try encoder.encode(message)
          target.enqueue(SendQueue.Item(message: encoded, reply: .bulk(channel)))
        } catch {
          channel.send([BulkOutcome(messageID: error.messageID ?? "", result: .failure(error))])
        }
      }
      channel.sourceEnded(nil)
    } catch {
      channel.sourceEnded(error)
    }
  }
}

/// The outcomes of one bulk send, and the credit that bounds it.
final class BulkChannel: Sendable {
  private struct State {
    /// Taken from the source, its outcome not taken by the consumer.
    var outstanding = 0
    /// Taken from the source and not ended.
    var inFlight = 0
    var producer: CheckedContinuation<Void, Never>?
    var isSourceEnded = false
    var isAbandoned = false
    var failure: (any Error)?
  }

  let outcomes = BatchChannel<BulkOutcome>()
  private let creditMax: Int
  private let state = Mutex(State())

  init(creditMax: Int) { self.creditMax = max(2, creditMax) }

  var isAbandoned: Bool { state.withLock { $0.isAbandoned } }
  var failure: (any Error)? { state.withLock { $0.failure } }

  /// Waits for credit for one message.
  ///
  /// - Returns: false when nobody takes outcomes any more.
  func admit() async -> Bool {
    while true {
      let answer: Bool? = state.withLock { state in
        if state.isAbandoned { return false }
        guard state.outstanding < creditMax else { return nil }
        state.outstanding += 1
        state.inFlight += 1
        return true
      }
      if let answer { return answer }
      // Resumed by the consumer or by `abandon`, which the owner of this task calls when it is cancelled.
      await withCheckedContinuation { continuation in
        let goOn = state.withLock { state in
          if state.isAbandoned || state.outstanding < creditMax { return true }
          state.producer = continuation
          return false
        }
        if goOn { continuation.resume() }
      }
    }
  }

  func send(_ batch: [BulkOutcome]) {
    outcomes.send(batch)
    let isDone = state.withLock { state in
      state.inFlight -= batch.count
      return state.isSourceEnded && state.inFlight == 0
    }
    if isDone { outcomes.finish() }
  }

  /// The consumer has dealt with so many outcomes.
  ///
  /// The producer goes on when half of the credit is free, so that it wakes once for many.
  func taken(_ count: Int) {
    let producer: CheckedContinuation<Void, Never>? = state.withLock { state in
      state.outstanding -= count
      guard state.outstanding <= creditMax / 2 else { return nil }
      let producer = state.producer
      state.producer = nil
      return producer
    }
    producer?.resume()
  }

  func sourceEnded(_ error: (any Error)?) {
    let isDone = state.withLock { state in
      state.isSourceEnded = true
      state.failure = error
      return state.inFlight == 0
    }
    if isDone { outcomes.finish() }
  }

  func abandon() {
    let producer = state.withLock { state in
      state.isAbandoned = true
      let producer = state.producer
      state.producer = nil
      return producer
    }
    producer?.resume()
    outcomes.finish()
  }
}
