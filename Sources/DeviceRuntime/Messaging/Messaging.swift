import AppStorage
import Connections
import JSONCore

/// Push messages of one app on one device: its token, what it receives, and what it sends to app servers.
///
/// ```swift
/// let messaging = Messaging(.init(device: device, project: "demo", apiKey: key, app: "org.example.app"), center)
/// await messaging.onMessage { message in print(message.data) }
/// try await messaging.start()
/// for await event in messaging.events { … }
/// ```
///
/// A push is written down before the server is told that it arrived, and shown after: whenever the process is killed, the
/// user sees it once or again, and the badge is right.
public actor Messaging {
  /// As it was made.
  public nonisolated let configuration: Configuration
  /// Shows what arrives.
  public nonisolated let center: NotificationCenter
  private nonisolated let channel = BatchChannel<Event>()

  private var handler: (@Sendable (DeviceMessage) async throws -> Void)?
  private var identity: Device.Credentials?
  private var device: Device?
  private var receiving: [Task<Void, Never>] = []
  private var inFlight: Set<String> = []
  private var expiry: Task<Void, Never>?
  private var wasDeleted = false
  private var isStopped = true
  private var isConnecting = false

  /// - Parameters:
  ///   - configuration: Which server and app.
  ///   - center: The app's notification center; its data folder holds the token too.
  public init(_ configuration: Configuration, _ center: NotificationCenter) {
    self.configuration = configuration
    self.center = center
  }

  deinit {
    for task in receiving { task.cancel() }
    expiry?.cancel()
    channel.finish()
  }

  private var store: AppStore { center.store }
  private var nowMs: Int64 { center.configuration.nowMs() }

  // MARK: Life

  /// What happens, for one listener; kept until somebody listens, the newest thousand.
  public nonisolated var events: AsyncStream<Event> {
    AsyncStream { [channel] in
      await channel.receive(1).first
    }
  }

  /// What is done with data messages, and in the foreground with all.
  ///
  /// Set it before ``start()``. One whose handler throws comes again on the next stream.
  public func onMessage(_ handler: @escaping @Sendable (DeviceMessage) async throws -> Void) {
    self.handler = handler
  }

  /// Registers the app if it has no token that holds, connects, and receives from then on.
  ///
  /// With a token it returns also while the server cannot be reached, and goes on trying.
  /// - Throws: ``Failure`` when a token is needed and the server cannot be reached or refuses the project's key.
  public func start() async throws(Failure) {
    guard isStopped else { return }
    isStopped = false
    wasDeleted = try stored("token_deleted") == "1"
    do {
      identity = try loadIdentity()
      try await settleIdentity()
      try await connect(mayRegister: true)
    } catch {
      isStopped = true
      throw error
    }
  }

  /// Ends the stream; what waits to be sent is sent after the next start.
  public func stop() async {
    isStopped = true
    await disconnect()
  }

  private func disconnect() async {
    let device = self.device
    self.device = nil
    await device?.close(within: .seconds(1))
    for task in receiving { task.cancel() }
    receiving = []
    expiry?.cancel()
  }

  /// Returns once connected, or when the first try failed: the device goes on trying by itself.
  private func connect(mayRegister: Bool) async throws(Failure) {
    guard let identity else { return }
    var configuration = configuration.device
    configuration.connectPatience = .seconds(1 << 30)
    let device: Device
    do throws(Device.ConnectError) {
      device = try Device(identity, configuration)
    } catch {
      throw Failure(error.description)
    }
    self.device = device
    isConnecting = true
    defer { isConnecting = false }
    watch(device)
    receiving.append(Task { try? await device.connect() })
    for await state in device.states {
      switch state {
      case .connected: return
      case .disconnected(let end) where end.wasRefused:
        self.device = nil
        await device.close(within: .zero)
        guard mayRegister else { throw Failure(end.reason) }
        // The server lost or dropped the device: it is a new one now.
        self.identity = nil
        try await register(.refused, previous: nil)
        return try await connect(mayRegister: false)
      case .disconnected, .closed: return
      case .idle, .connecting: break
      }
    }
  }

  /// Listens before the stream is there, so that nothing which arrives with it is missed.
  private func watch(_ device: Device) {
    for task in receiving { task.cancel() }
    let receive: @Sendable (DeviceMessage) async throws -> Void = { [weak self] message in
      guard let self else { throw CancellationError() }
      try await self.receive(message)
    }
    receiving = [
      Task { await device.handleMessages(receive) },
      Task { [weak self] in
        for await notice in device.deletedMessages { await self?.tell(.deletedMessages(notice)) }
      },
      Task { [weak self] in
        for await state in device.states {
          guard let self else { return }
          await self.changed(state, of: device)
        }
      },
    ]
  }

  private func changed(_ state: Device.State, of device: Device) async {
    guard device === self.device else { return }
    tell(.connection(state))
    switch state {
    case .connected:
      try? store.set(["last_connected": "\(nowMs)"])
      pump()
    case .disconnected(let end) where end.wasRefused && !isStopped && !isConnecting:
      self.device = nil
      identity = nil
      do {
        try await register(.refused, previous: nil)
        try await connect(mayRegister: false)
      } catch {
        tell(.connection(.closed))
      }
    default: break
    }
  }

  private func tell(_ event: Event) {
    // Bounded: an app that does not listen keeps the first thousand.
    guard channel.count < 1_000 else { return }
    channel.send(event)
  }

  // MARK: Token

  /// The app's token; registers the app if it has none.
  public func token() async throws(Failure) -> String {
    if identity == nil { identity = try loadIdentity() }
    if let identity { return identity.token }
    try await register(wasDeleted ? .deleted : .firstStart, previous: nil)
    wasDeleted = false
    if !isStopped { try await connect(mayRegister: false) }
    guard let identity else { throw Failure("there is no token") }
    return identity.token
  }

  /// Ends the registration: messages to the token are refused from now on, and there is none until ``token()`` is
  /// asked for again.
  public func deleteToken() async throws(Failure) {
    if identity == nil { identity = try loadIdentity() }
    if let identity {
      do throws(DeviceRegistrar.Failure) {
        try await registrar().unregister(identity)
      } catch {
        // Unknown to the server is as good as deleted.
        guard error.status == 404 || error.status == 401 else {
          throw Failure(status: error.status, error.detail)
        }
      }
    }
    await disconnect()
    identity = nil
    wasDeleted = true
    try save(["token": nil, "device_id": nil, "device_secret": nil, "token_deleted": "1"])
  }

  /// Messages to a topic reach this app from now on.
  public func subscribe(to topic: String) async throws(Failure) {
    let identity = try await needIdentity()
    try await order { (registrar) throws(DeviceRegistrar.Failure) in
      try await registrar.subscribe(identity, to: topic)
    }
  }

  /// Messages to a topic no longer reach this app.
  public func unsubscribe(from topic: String) async throws(Failure) {
    let identity = try await needIdentity()
    try await order { (registrar) throws(DeviceRegistrar.Failure) in
      try await registrar.unsubscribe(identity, from: topic)
    }
  }

  private func needIdentity() async throws(Failure) -> Device.Credentials {
    _ = try await token()
    guard let identity else { throw Failure("there is no token") }
    return identity
  }

  private func order(
    _ body: @Sendable (DeviceRegistrar) async throws(DeviceRegistrar.Failure) -> Void
  ) async throws(Failure) {
    do throws(DeviceRegistrar.Failure) {
      try await body(try registrar())
    } catch {
      throw Failure(status: error.status, error.detail)
    }
  }

  private func registrar() throws(DeviceRegistrar.Failure) -> DeviceRegistrar {
    try DeviceRegistrar(
      host: configuration.device.host, port: configuration.httpsPort, project: configuration.project,
      apiKey: configuration.apiKey, trust: configuration.device.trust,
      serverName: configuration.device.serverName)
  }

  private func loadIdentity() throws(Failure) -> Device.Credentials? {
    guard let token = try stored("token"), let id = try stored("device_id"),
      let secret = try stored("device_secret")
    else { return nil }
    return Device.Credentials(token: token, deviceID: id, deviceSecret: secret)
  }

  /// Registers when there is nothing yet, or what there is does not hold any more.
  private func settleIdentity() async throws(Failure) {
    guard let identity else {
      if !wasDeleted { try await register(.firstStart, previous: nil) }
      return
    }
    let last = try stored("last_connected").flatMap { Int64($0) } ?? nowMs
    if nowMs - last > configuration.tokenLifetime.components.seconds &* 1_000 {
      self.identity = nil
      try await register(.expired, previous: nil)
    } else if try stored("app_version") != configuration.appVersion {
      try await register(.appUpdated, previous: identity)
    }
  }

  /// - Parameter previous: What the new token takes the place of: messages to the old one still arrive.
  private func register(_ reason: TokenReason, previous: Device.Credentials?) async throws(Failure) {
    let made: Device.Credentials
    do throws(DeviceRegistrar.Failure) {
      made = try await registrar().register(
        app: configuration.app, platform: configuration.platform, user: configuration.user,
        previousToken: previous?.token, device: previous)
    } catch {
      throw Failure(status: error.status, error.detail)
    }
    try save([
      "token": made.token, "device_id": made.deviceID, "device_secret": made.deviceSecret,
      "app_version": configuration.appVersion, "last_connected": "\(nowMs)", "token_deleted": nil,
    ])
    identity = made
    tell(.token(made.token, reason))
  }

  private func stored(_ name: String) throws(Failure) -> String? {
    do throws(AppStoreFault) { return try store.value(name) } catch { throw Failure(error.description) }
  }

  private func save(_ values: [String: String?]) throws(Failure) {
    do throws(AppStoreFault) { try store.set(values) } catch { throw Failure(error.description) }
  }

  // MARK: Receiving

  /// Returning lets the device ack; throwing makes the server deliver it again.
  private func receive(_ message: DeviceMessage) async throws {
    let stage = try store.stage(of: message.id)
    guard stage != .handled else { return }
    let isForeground = await center.isForeground
    let notification = message.notificationJSON.flatMap { try? JSONValue(parsing: $0) }
    let isForApp = handler != nil && (notification == nil || isForeground || message.contentAvailable)
    if stage == nil, let notification {
      let content = NotificationContent(
        push: notification, data: message.data, image: message.imageURL, isMutable: message.mutableContent,
        localizer: center.configuration.localizer)
      let id = notification["tag"]?.string ?? message.collapseKey ?? message.id
      try await center.receive(
        NotificationRequest(remote: id, content: content, from: message.from), message: message.id,
        stage: isForApp ? .noted : .handled)
    }
    guard isForApp, let handler else { return }
    try await handler(message)
    try store.write([], message: message.id, stage: .handled)
  }

  // MARK: Sending

  /// Hands a message over to be sent to an app server; how it ends is an event.
  ///
  /// It waits on the disk while there is no connection, at most for its time to live.
  /// - Parameters:
  ///   - senderID: The app server's sender id.
  ///   - data: At most 4,096 bytes of names and values.
  ///   - id: Unique among the device's messages; nil makes one.
  ///   - timeToLive: Whole seconds; zero is now or never.
  /// - Returns: Its id.
  @discardableResult
  public func send(
    to senderID: String, data: [String: String], id: String? = nil, timeToLive: Duration = .seconds(86_400)
  ) -> String {
    let id = id ?? "u-" + String(UInt64.random(in: .min ... .max), radix: 36)
    let message = AppStore.Outgoing(
      id: id, to: senderID, data: data, timeToLive: max(0, timeToLive.components.seconds), createdMs: nowMs)
    if let failure = refusal(of: message) {
      tell(.sendFailed(id: id, failure))
      return id
    }
    if message.timeToLive > 0 {
      do throws(AppStoreFault) { try store.keep(message) } catch {
        tell(.sendFailed(id: id, SendFailure(.unknown, error.description)))
        return id
      }
      pump()
    } else {
      sendNow(message)
    }
    return id
  }

  private func refusal(of message: AppStore.Outgoing) -> SendFailure? {
    do throws(UpstreamSendError) {
      _ = try UpstreamEncoder.encode(
        message.data, to: message.to, id: message.id, timeToLive: .seconds(message.timeToLive), token: nil)
    } catch {
      return SendFailure(error) ?? SendFailure(.invalidParameters, error.description)
    }
    let size = message.data.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    if size > 4_096 { return SendFailure(.tooLarge, "\(size) bytes") }
    let waiting = (try? store.outgoing().count) ?? 0
    if message.timeToLive > 0, waiting >= configuration.outgoingMax {
      return SendFailure(.tooMany, "\(waiting) messages wait")
    }
    if message.timeToLive == 0, device?.state != .connected {
      return SendFailure(.notAvailable, "there is no connection")
    }
    return nil
  }

  /// Sends what waits, and gives up what waited for too long.
  private func pump() {
    expiry?.cancel()
    let isConnected = device?.state == .connected
    var nextEnd: Int64?
    for message in (try? store.outgoing()) ?? [] where !inFlight.contains(message.id) {
      let end = message.createdMs &+ message.timeToLive &* 1_000
      if end <= nowMs {
        try? store.drop(outgoing: message.id)
        tell(.sendFailed(id: message.id, SendFailure(.notAvailable, "its time ran out")))
      } else if isConnected {
        sendNow(message)
      } else {
        nextEnd = min(nextEnd ?? end, end)
      }
    }
    guard let nextEnd else { return }
    let wait = Duration.milliseconds(max(1, min(60_000, nextEnd - nowMs)))
    expiry = Task { [weak self] in
      guard (try? await Task.sleep(for: wait)) != nil else { return }
      await self?.pump()
    }
  }

  private func sendNow(_ message: AppStore.Outgoing) {
    guard let device, let token = identity?.token, inFlight.insert(message.id).inserted else { return }
    let left = max(0, message.timeToLive &- (nowMs &- message.createdMs) / 1_000)
    Task { [weak self] in
      let result: Result<UpstreamOutcome, UpstreamSendError>
      do throws(UpstreamSendError) {
        result = .success(
          try await device.sendUpstream(
            message.data, to: message.to, id: message.id, timeToLive: .seconds(left), token: token))
      } catch {
        result = .failure(error)
      }
      await self?.ended(message, result)
    }
  }

  private func ended(_ message: AppStore.Outgoing, _ result: Result<UpstreamOutcome, UpstreamSendError>) {
    inFlight.remove(message.id)
    switch result {
    case .success:
      try? store.drop(outgoing: message.id)
      tell(.sent(id: message.id))
    case .failure(let error):
      if let failure = SendFailure(error) {
        try? store.drop(outgoing: message.id)
        tell(.sendFailed(id: message.id, failure))
      } else if message.timeToLive == 0 {
        tell(.sendFailed(id: message.id, SendFailure(.notAvailable, error.description)))
      } else if error.code == .overdue {
        pump()
      }
    // Else it goes out with the next connection or the next message.
    }
  }
}
