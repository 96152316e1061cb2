import Bytes
package import Connections
package import DeliveryCore
import EventLoops
import Seams
import Synchronization

/// An app server's connection to a push server over its stream protocol.
///
/// ```swift
/// let client = try StreamClient(.init(senderID: "100000000001", serverKey: key, trust: .file("ca.pem")))
/// try await client.connect()
/// let ack = try await client.send(PushMessage(to: .token(token), data: ["order": "88"]))
/// await client.close()
/// ```
///
/// It keeps ``Configuration/streams`` streams open. At most ``Configuration/window`` messages are on the way on
/// each; further sends suspend. A lost stream is opened again, and what had no answer on it is sent again under its
/// id, on the others if there are any. When the server drains, another stream is opened first and the old one is
/// read to its end. Every message handed over ends exactly once: with an
/// ``Ack`` or a ``SendError``.
public final class StreamClient: MessageTarget {
  /// As it was made.
  public let configuration: Configuration

  private let loop: EventLoop
  private let commands: Mailbox<ClientCore.Command>
  private let queue = SendQueue()
  private let board = StateBoard(State.idle)
  private let deliveries = BatchChannel<UpstreamDelivery>()
  private let encoder: Mutex<MessageEncoder>
  private let calls = Atomic<UInt64>(0)
  private let isStarted = Atomic<Bool>(false)

  /// Makes a client that is not connected; messages handed over wait until it is.
  ///
  /// - Throws: ``ConnectError`` when the certificates of ``Configuration/trust`` cannot be read, a setting is out
  ///   of range, or no thread can be had.
  public convenience init(_ configuration: Configuration) throws(ConnectError) {
    let endpoint = try configuration.makeEndpoint()
    try self.init(configuration) { endpoint.makeConnection($0, $1) }
  }

  /// - Parameter connector: Makes the connections of streams, on the client's loop.
  package init(
    _ configuration: Configuration,
    connector: @escaping @Sendable (StreamNumber, ClientLine) -> any ClientConnection
  ) throws(ConnectError) {
    self.configuration = configuration
    encoder = Mutex(
      MessageEncoder(
        idPrefix: MessageEncoder.randomPrefix(), ordersByTarget: configuration.ordersByTarget))
    loop = EventLoop(name: "stream-client")
    commands = Mailbox(on: loop)
    do {
      try loop.start()
    } catch {
      throw ConnectError(wasRefused: false, detail: String(describing: error))
    }
    let settings = configuration.machineSettings
    loop.submit { [loop, commands, queue, board, weak self] in
      let line = ClientLine(
        on: loop, settings: settings, seed: .random(in: .min ... .max), makeConnection: connector)
      let core = ClientCore(engine: SenderEngine(line: line), queue: queue, board: board) { inbound in
        guard let self else { return }
        self.deliveries.send(inbound.map { UpstreamDelivery($0, of: self) })
      }
      commands.receive { core.receive($0) }
      // The mailbox goes with the client object; the core must last until what it ended is told.
      loop.onStop { withExtendedLifetime(core) {} }
    }
  }

  deinit {
    deliveries.finish()
    commands.post(.abandon)
  }

  // MARK: Connection

  /// The present state.
  public var state: State { board.latest }

  /// The present state and every later one, until the client is closed; any number of observers.
  ///
  /// One that is slow misses the oldest of more than 64.
  public var states: AsyncStream<State> { board.observe() }

  /// Connects and logs in; returns once messages can be written.
  ///
  /// Harmless when connected.
  ///
  /// - Throws: ``ConnectError`` at once when the credentials are refused, and when the server cannot be reached
  ///   for ``Configuration/connectPatience``; the client is closed then.
  public func connect() async throws(ConnectError) {
    let patienceEnds = ContinuousClock.now + configuration.connectPatience
    let states = board.observe()
    if !isStarted.exchange(true, ordering: .acquiringAndReleasing) { commands.post(.start) }
    var last = "closed"
    for await state in states {
      switch state {
      case .connected, .draining: return
      case .disconnected(let disconnection):
        last = disconnection.reason
        if disconnection.wasRefused || ContinuousClock.now >= patienceEnds {
          await close(within: .zero)
          throw ConnectError(wasRefused: disconnection.wasRefused, detail: disconnection.reason)
        }
      case .idle, .connecting, .closed: break
      }
    }
    throw ConnectError(wasRefused: false, detail: Task.isCancelled ? "cancelled" : last)
  }

  /// Takes no more messages, waits for the answers to those it has, then ends the stream in order.
  ///
  /// - Parameter patience: How long to wait for answers; messages without one fail with
  ///   ``SendError/Code/closed``. ``Configuration/closeTimeout`` when left out.
  public func close(within patience: Duration? = nil) async {
    isStarted.store(true, ordering: .releasing)
    commands.post(.close(within: patience ?? configuration.closeTimeout))
    // The loop closes at that deadline, and connections a few seconds later at most. Not cut short when the
    // task is cancelled: who cancels the task of a close still wants it closed.
    await Task { [board] in
      for await state in board.observe() where state == .closed {}
    }.value
    deliveries.finish()
    loop.stop()
  }

  // MARK: Downstream

  /// Sends one message and waits for its end.
  ///
  /// Suspends while the window is full. The wait is bounded by ``RetryPolicy/totalTimeout`` from the moment
  /// the client has room for it. Cancelling the task takes the message back and frees its place.
  public func send(_ message: PushMessage) async throws(SendError) -> Ack {
    let encoded = try encoder.withLock { (encoder) throws(SendError) in try encoder.encode(message) }
    let number = calls.wrappingAdd(1, ordering: .relaxed).newValue
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        enqueue(SendQueue.Item(message: encoded, reply: .call(number: number, continuation)))
      }
    } onCancel: {
      if let item = queue.remove(call: number) {
        item.reply.answer(
          encoded.id, .failure(SendError(code: .cancelled, messageID: encoded.id)))
      } else {
        commands.post(.cancel(call: number))
      }
    }
    return try result.get()
  }

  /// Sends all messages of a source, with as many on the way as the window allows.
  ///
  /// Invalid messages end at once with their fault; the others go on. See ``BulkSend``.
  public func send<Source: AsyncSequence & Sendable>(contentsOf source: Source) -> BulkSend<Source>
  where Source.Element == PushMessage {
    BulkSend(target: self, source: source, creditMax: 2 * configuration.heldMax + 512)
  }

  /// Sends all messages of a sequence, as the form for asynchronous sequences does.
  public func send<Source: Sequence & Sendable>(contentsOf source: Source) -> BulkSend<AsyncList<Source>>
  where Source.Element == PushMessage {
    send(contentsOf: AsyncList(base: source))
  }

  func makeEncoder() -> MessageEncoder {
    MessageEncoder(
      idPrefix: MessageEncoder.randomPrefix(), ordersByTarget: configuration.ordersByTarget)
  }

  func enqueue(_ item: SendQueue.Item) {
    switch queue.put(item) {
    case .queued: break
    case .wake: commands.post(.pull)
    case .closed:
      item.reply.answer(
        item.message.id, .failure(SendError(code: .closed, messageID: item.message.id)))
    case .cancelled:
      item.reply.answer(
        item.message.id, .failure(SendError(code: .cancelled, messageID: item.message.id)))
    }
  }

  /// Takes back what has not ended of a bulk send whose outcomes nobody wants.
  func takeBack(_ channel: BulkChannel) { commands.post(.takeBack(channel)) }

  // MARK: Upstream

  /// Upstream messages and receipts, each to be acked by .
  ///
  /// `UpstreamDelivery/ack()``. Repeats are not shown.
  ///
  /// The server stops pushing while 100 on a stream are not acked.
  public var upstream: UpstreamDeliveries { UpstreamDeliveries(channel: deliveries) }

  /// Calls `handler` for every upstream message and receipt; each is acked when it returns.
  ///
  /// One whose handler throws is not acked: the server delivers it again later. Runs until the client is closed
  /// or the task is cancelled.
  /// - Parameters:
  ///   - concurrency: Handlers that run at a time; with one they run in the order of arrival.
  ///   - handler: Deals with one message or receipt.
  public func handleUpstream(
    concurrency: Int = 1, _ handler: @escaping @Sendable (UpstreamEvent) async throws -> Void
  ) async {
    await withDiscardingTaskGroup { group in
      for _ in 0..<max(1, concurrency) {
        group.addTask { [deliveries] in
          while let delivery = await deliveries.receive(1).first {
            if (try? await handler(delivery.event)) != nil { delivery.ack() }
          }
        }
      }
    }
  }

  func handled(_ key: Hash128, success: Bool) { commands.post(.handled(key, success: success)) }
}

/// A sequence as an asynchronous one that never waits.
public struct AsyncList<Base: Sequence & Sendable>: AsyncSequence, Sendable {
  /// An element of the sequence.
  public typealias Element = Base.Element

  let base: Base

  /// Starts at the beginning.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inner: base.makeIterator()) }

  /// Gives the elements one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    var inner: Base.Iterator

    /// The next element; nil at the end.
    public mutating func next() async -> Base.Element? { inner.next() }
  }
}
