import Connections
import Seams
import Synchronization

/// Sends messages over HTTP: HTTP v1 with access tokens, or the legacy form with a server key.
///
/// ```swift
/// let account = try ServiceAccount(json: bytes)
/// let sender = try HTTPSender(.init(access: .serviceAccount(account), trust: .file("ca.pem")))
/// let ack = try await sender.send(PushMessage(to: .token(token), data: ["order": "88"]))
/// await sender.close()
/// ```
///
/// Messages, acks, errors and the rules for retries are those of ``StreamClient``; conditions have the names that
/// the stream protocol gives them, whatever the form. What only streams can do (receipts, upstream) is not here.
public final class HTTPSender: Sendable {
  enum Command: Sendable {
    case cancel(call: UInt64)
    case takeBack(BulkChannel)
    case close(within: Duration)
  }

  /// As it was made.
  public let configuration: Configuration
  private let thread: CurlThread
  private let queue = SendQueue()
  private let commands = Guarded<[Command]>([])
  private let encoder: Mutex<MessageEncoder>
  private let calls = Atomic<UInt64>(0)
  private let end = StateBoard(false)

  /// Makes a sender; it connects when there is something to send.
  ///
  /// - Throws: ``StreamClient/ConnectError`` when a setting is out of range or no thread can be had.
  public init(_ configuration: Configuration) throws(StreamClient.ConnectError) {
    guard (1...65_535).contains(configuration.port) else {
      throw StreamClient.ConnectError(wasRefused: false, detail: "not a port: \(configuration.port)")
    }
    guard let thread = CurlThread(CurlSettings(configuration), time: SystemTime()) else {
      throw StreamClient.ConnectError(wasRefused: false, detail: "curl cannot be used")
    }
    self.configuration = configuration
    self.thread = thread
    encoder = Mutex(
      MessageEncoder(idPrefix: MessageEncoder.randomPrefix(), form: MessageEncoder.Form(configuration)))
    let engine = HTTPEngine(configuration, time: thread.time, queue: queue, commands: commands) { [end] in
      end.set(true)
      end.finish()
    }
    guard thread.start(engine) else {
      throw StreamClient.ConnectError(wasRefused: false, detail: "no thread left")
    }
  }

  deinit { order(.close(within: .zero)) }

  /// Sends one message and waits for its end.
  ///
  /// Suspends while as many requests are on the way as ``Configuration/mode`` allows. Cancelling the task takes the
  /// message back; the server may have it already.
  public func send(_ message: PushMessage) async throws(SendError) -> Ack {
    let encoded = try encoder.withLock { (encoder) throws(SendError) in try encoder.encode(message) }
    let number = calls.wrappingAdd(1, ordering: .relaxed).newValue
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        enqueue(SendQueue.Item(message: encoded, reply: .call(number: number, continuation)))
      }
    } onCancel: {
      if let item = queue.remove(call: number) {
        item.reply.answer(encoded.id, .failure(SendError(code: .cancelled, messageID: encoded.id)))
      } else {
        order(.cancel(call: number))
      }
    }
    return try result.get()
  }

  /// Sends all messages of a source, with as many requests on the way as ``Configuration/mode`` allows.
  ///
  /// Invalid messages end at once with their fault; the others go on. See ``BulkSend``.
  public func send<Source: AsyncSequence & Sendable>(contentsOf source: Source) -> BulkSend<Source>
  where Source.Element == PushMessage {
    BulkSend(target: self, source: source, creditMax: 2 * configuration.mode.requestsMax + 512)
  }

  /// Sends all messages of a sequence, as the form for asynchronous sequences does.
  public func send<Source: Sequence & Sendable>(contentsOf source: Source) -> BulkSend<AsyncList<Source>>
  where Source.Element == PushMessage {
    send(contentsOf: AsyncList(base: source))
  }

  /// Waits for the answers to what is on the way, then ends the connections.
  ///
  /// - Parameter patience: How long to wait; messages without an answer fail with ``SendError/Code/closed``.
  public func close(within patience: Duration = .seconds(10)) async {
    order(.close(within: patience))
    await Task { [end] in for await isOver in end.observe() where isOver {} }.value
  }

  private func order(_ command: Command) {
    commands.withLock { $0.append(command) }
    thread.wake()
  }
}

extension HTTPSender: MessageTarget {
  func makeEncoder() -> MessageEncoder {
    MessageEncoder(idPrefix: MessageEncoder.randomPrefix(), form: MessageEncoder.Form(configuration))
  }

  func enqueue(_ item: SendQueue.Item) {
    switch queue.put(item) {
    case .queued: break
    case .wake: thread.wake()
    case .closed:
      item.reply.answer(item.message.id, .failure(SendError(code: .closed, messageID: item.message.id)))
    case .cancelled:
      item.reply.answer(item.message.id, .failure(SendError(code: .cancelled, messageID: item.message.id)))
    }
  }

  func takeBack(_ channel: BulkChannel) { order(.takeBack(channel)) }
}

extension MessageEncoder.Form {
  init(_ configuration: HTTPSender.Configuration) {
    switch configuration.access {
    case .legacy: self = .legacyHTTP(keepsID: configuration.sendsMessageID)
    case .serviceAccount, .accessToken: self = .v1
    }
  }
}
