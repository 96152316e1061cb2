import Bytes
package import Connections
package import DeliveryCore
import EventLoops
import PushModel
import PushXMPP
import Seams
import Synchronization

/// A device: receives messages for its apps and sends upstream messages to app servers.
///
/// ```swift
/// let registrar = try DeviceRegistrar(project: "demo", apiKey: key, trust: .file("ca.pem"))
/// let credentials = try await registrar.register(app: "org.example.app")
/// let device = try Device(credentials, .init(trust: .file("ca.pem")))
/// try await device.connect()
/// await device.handleMessages { message in print(message.data) }
/// ```
///
/// A lost stream is opened again; one that another log-in of the device replaced is not. A message that comes again
/// after it was handled is acked again and not shown.
public final class Device: Sendable {
  /// As it was made.
  public let configuration: Configuration
  /// Who it is.
  public let credentials: Credentials

  private let loop: EventLoop
  private let commands: Mailbox<DeviceCore.Command>
  private let board = StateBoard(State.idle)
  private let shown = BatchChannel<ShownMessage>()
  private let deletions = BatchChannel<DeletedMessages>()
  private let numbers = Atomic<UInt64>(0)
  private let idPrefix: String
  private let isStarted = Atomic<Bool>(false)

  /// Makes a device that is not connected.
  ///
  /// - Throws: ``ConnectError`` when the certificates of ``Configuration/trust`` cannot be read, a setting is out
  ///   of range, or no thread can be had.
  public convenience init(
    _ credentials: Credentials, _ configuration: Configuration = Configuration()
  ) throws(ConnectError) {
    let endpoint = try configuration.makeEndpoint(for: credentials)
    try self.init(credentials, configuration) { endpoint.makeConnection($0, $1) }
  }

  /// - Parameter connector: Makes the connections of streams, on the device's loop.
  package init(
    _ credentials: Credentials, _ configuration: Configuration,
    connector: @escaping @Sendable (StreamNumber, ClientLine) -> any ClientConnection
  ) throws(ConnectError) {
    self.credentials = credentials
    self.configuration = configuration
    var prefix = ByteWriter(capacity: 17)
    prefix.append(hex: UInt64.random(in: .min ... .max))
    prefix.append("-")
    idPrefix = String(decoding: prefix.bytes, as: UTF8.self)
    loop = EventLoop(name: "device")
    commands = Mailbox(on: loop)
    do {
      try loop.start()
    } catch {
      throw ConnectError(wasRefused: false, detail: String(describing: error))
    }
    loop.submit { [loop, commands, board, shown, deletions] in
      let line = ClientLine(
        on: loop, settings: configuration.machineSettings, seed: .random(in: .min ... .max),
        makeConnection: connector)
      let rule: DeviceAckRule =
        switch configuration.acks {
        case .automatic: .whenHandled
        case .delayed(let pause): .delayed(pause)
        case .never: .never
        }
      let engine = DeviceEngine(line: line, ackRule: rule, rememberedMax: configuration.rememberedMax)
      let core = DeviceCore(engine: engine, board: board, messages: shown, deletions: deletions)
      commands.receive { core.receive($0) }
      // The mailbox goes with the device object; the core must last until what it ended is told.
      loop.onStop { withExtendedLifetime(core) {} }
    }
  }

  deinit { commands.post(.abandon) }

  // MARK: Connection

  /// The present state.
  public var state: State { board.latest }

  /// The present state and every later one, until the device is closed; any number of observers.
  ///
  /// One that is slow misses the oldest of more than 64.
  public var states: AsyncStream<State> { board.observe() }

  /// Connects and logs in; returns once messages can arrive.
  ///
  /// Harmless when connected.
  ///
  /// - Throws: ``ConnectError`` at once when the credentials are refused, and when the server cannot be reached
  ///   for ``Configuration/connectPatience``; the device is closed then.
  public func connect() async throws(ConnectError) {
    let patienceEnds = ContinuousClock.now + configuration.connectPatience
    let states = board.observe()
    if !isStarted.exchange(true, ordering: .acquiringAndReleasing) { commands.post(.start) }
    var last = "closed"
    for await state in states {
      switch state {
      case .connected: return
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

  /// Waits for the outcome of upstream messages, then ends the stream in order.
  ///
  /// - Parameter patience: How long to wait for outcomes.
  public func close(within patience: Duration = .seconds(5)) async {
    isStarted.store(true, ordering: .releasing)
    commands.post(.close(within: patience))
    // Bounded by `patience` and a few seconds for the stream's end; not cut short by cancellation.
    await Task { [board] in
      for await state in board.observe() where state == .closed {}
    }.value
    loop.stop()
  }

  // MARK: Messages

  /// Messages as they arrive, each counted as handled when it is taken.
  ///
  /// Repeats are not shown.
  ///
  /// Several iterators share them. ``handleMessages(_:)`` acks later: when a handler returned.
  public var messages: DeviceMessages { DeviceMessages(device: self, channel: shown) }

  /// Calls `handler` for every message, one after the other; each is acked when it returns, as
  /// ``Configuration/acks`` says.
  ///
  /// One whose handler throws is not acked: the server delivers it again on the next stream. Runs until the device
  /// is closed or the task is cancelled.
  public func handleMessages(_ handler: @escaping @Sendable (DeviceMessage) async throws -> Void) async {
    while let next = await shown.receive(1).first {
      let success = (try? await handler(next.message)) != nil
      commands.post(.handled([next.key], success: success))
    }
  }

  /// The server's notices that it discarded messages.
  public var deletedMessages: DeletedMessagesSequence { DeletedMessagesSequence(channel: deletions) }

  func taken(_ keys: [Hash128]) { commands.post(.handled(keys, success: true)) }

  // MARK: Upstream

  /// Sends a message to an app server and waits until the server took charge of it.
  ///
  /// - Parameters:
  ///   - data: At most 4,096 bytes of names and values.
  ///   - senderID: The app server's sender id.
  ///   - id: Unique among the device's messages; nil makes one.
  ///   - timeToLive: Whole seconds; nil is a day, zero is only to an app server that is connected now.
  ///   - token: Which registration sends; needed when the device has more than one.
  /// - Throws: ``UpstreamSendError``; ``UpstreamSendError/Code/tooManyMessages`` at once when
  ///   ``Configuration/upstreamMax`` have no outcome yet.
  @discardableResult
  public func sendUpstream(
    _ data: [String: String], to senderID: String, id: String? = nil, timeToLive: Duration? = nil,
    token: String? = nil
  ) async throws(UpstreamSendError) -> UpstreamOutcome {
    let number = numbers.wrappingAdd(1, ordering: .relaxed).newValue
    let id = id ?? idPrefix + String(number)
    let message = try UpstreamEncoder.encode(
      data, to: senderID, id: id, timeToLive: timeToLive, token: token)
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if !commands.post(.send(number: number, message, continuation)) {
          continuation.resume(returning: .failure(UpstreamSendError(code: .closed, messageID: id)))
        }
        // The handler below may have run before this message was posted.
        if Task.isCancelled { commands.post(.cancel(number: number)) }
      }
    } onCancel: {
      commands.post(.cancel(number: number))
    }
    return try result.get()
  }
}

/// Turns an upstream message into a stanza, checked by the server's own rules.
package enum UpstreamEncoder {
  package static func encode(
    _ data: [String: String], to senderID: String, id: String, timeToLive: Duration?, token: String?
  ) throws(UpstreamSendError) -> EncodedMessage {
    func fault(_ detail: String) -> UpstreamSendError {
      UpstreamSendError(code: .invalidMessage, messageID: id, detail: detail)
    }
    guard let sender = SenderID(text: senderID) else { throw fault("not a sender id") }
    var seconds: Int?
    if let timeToLive {
      guard timeToLive.components.attoseconds == 0 else { throw fault("time to live: not whole seconds") }
      seconds = Int(clamping: timeToLive.components.seconds)
    }
    let message = PushModel.UpstreamMessage(
      to: sender, messageID: id, token: token, timeToLive: seconds, data: data)
    var json = ByteWriter(capacity: 256)
    message.write(to: &json)
    var reader = DeviceUpstreamReader(limits: Limits())
    switch json.bytes.withUnsafeBytes({ reader.read($0) }) {
    case .upstream: break
    case .refused(_, let description, _): throw fault(description)
    case .stanzaError(let text): throw fault(text)
    case .ack: throw fault("not a message")
    }
    var stanza = ByteWriter(capacity: json.count + 128)
    json.bytes.withUnsafeBytes { PushStanzas().append($0, id: id, to: &stanza) }
    return EncodedMessage(id: id, stanza: stanza.take())
  }
}
