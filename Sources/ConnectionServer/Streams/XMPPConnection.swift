import Bytes
import Connections
import EventLoops
import PushModel
import PushXMPP
import Seams
import Stores
import TLSCore
import Telemetry
import WebSocketCore
import XMLCore
import XMPPCore

/// What a bound connection hands its stanzas to.
protocol StreamSession: AnyObject {
  /// - Parameters:
  ///   - text: The decoded JSON text.
  ///   - head: The stanza around it; its ranges point into the loop's text buffer.
  func received(_ text: UnsafeRawBufferPointer, _ head: MessageHead)
  /// The peer sent its end tag: true when nothing more is owed to it.
  func peerCloses() -> Bool
  /// The connection is gone.
  func ended()
}

/// One XMPP connection of the server: a channel, over TCP or WebSocket, the stream machine, and after login a session.
///
/// Belongs to one loop at a time. It moves bytes and asks for credentials; the machine decides.
final class XMPPConnection: ChannelDelegate, LoginGuest {
  let context: ServerContext
  private(set) var worker: LoopWorker
  let channel: Channel
  /// Between the channel and the stream, when the connection came as one of HTTP.
  private let webSocket: XMPPWebSocket?
  let stream: ServerStream
  private var session: (any StreamSession)?
  private var login: Login?
  /// Address and port, for the log.
  let peer: String
  private var timer: LoopTimer?
  /// Bytes that came while credentials were looked up.
  private var held: [UInt8] = []
  private(set) var number: UInt32
  private var isEnded = false
  private var isClosing = false
  /// Reading is paused until the peer has read what it was sent.
  private var isStalled = false
  /// Where it counts until its credentials were found right.
  private var gate: LoginGate?
  private var fedAt: Moment
  /// A fault that a test asked for: nothing is heard or said any more.
  private var isMute = false

  enum Login {
    case sender(Project, domain: String)
    case device(DeviceCredentials, deviceID: String)
  }

  /// - Parameters:
  ///   - webSocket: For a channel that was upgraded, and is open.
  ///   - gate: The listener's, for a channel that was accepted.
  init(worker: LoopWorker, channel: Channel, webSocket: XMPPWebSocket? = nil, gate: LoginGate? = nil) {
    self.gate = gate
    fedAt = worker.loop.now
    self.worker = worker
    self.channel = channel
    self.webSocket = webSocket
    context = worker.context
    number = worker.shard.nextStreamNumber()
    stream = ServerStream(
      limits: StreamLimits(context.limits), now: worker.loop.now,
      random: { [loop = worker.loop] in loop.random() })
    peer = channel.peer.map { "\($0)" } ?? "unknown"
    worker.connections[number] = self
    worker.shard.counters.connections.add(1)
    channel.delegate = self
    channel.backlogBytesMax = context.limits.writeBacklogBytesMax
    channel.setUserTimeout(context.limits.deadAfter)
    gate?.enter(self)
    if webSocket == nil { channel.start() }
    armTimer()
  }

  var heardAt: Moment { max(channel.heardAt, fedAt) }

  private func leaveGate() {
    gate?.leave(self)
    gate = nil
  }

  var shard: Shard { worker.shard }
  var now: Moment { worker.loop.now }

  // MARK: From the channel

  func received(_ bytes: UnsafeRawBufferPointer) {
    guard !isEnded, !isMute else { return }
    if gate != nil { fedAt = now }
    if !held.isEmpty {
      hold(bytes)
      return
    }
    let taken = feed(bytes)
    if taken < bytes.count, !isEnded { hold(UnsafeRawBufferPointer(rebasing: bytes[taken...])) }
  }

  private func hold(_ bytes: UnsafeRawBufferPointer) {
    held.append(contentsOf: bytes)
    if held.count > context.limits.stanzaBytesMax {
      fail(.policyViolation, "Too much was sent before the login ended")
    }
  }

  /// - Returns: How many bytes the machine took; fewer than all while it waits for a verdict.
  private func feed(_ bytes: UnsafeRawBufferPointer) -> Int {
    shard.now = now
    shard.wall = worker.loop.wall
    guard let webSocket else { return feedStream(bytes) }
    let scratch = shard.scratch.webSocket
    var offset = 0
    while !isEnded, stream.state != .awaitingVerdict,
      let event = webSocket.next(
        bytes, &offset, limits: stream.xmlLimits, scratch, to: channel, now: now)
    {
      switch event {
      case .stream(let range): feedMessage(scratch.message, range)
      case .alive: _ = Self.space.withUTF8Buffer { feedStream(UnsafeRawBufferPointer($0)) }
      case .fault(let condition): fail(condition, "A WebSocket message that is no XMPP")
      case .ended(let reason):
        closeChannel()
        finish(reason)
      }
    }
    return isEnded ? bytes.count : offset
  }

  private static let space: StaticString = " "

  /// - Parameter message: Holds on to the loop's buffer, whatever is done meanwhile.
  private func feedMessage(_ message: [UInt8], _ range: Range<Int>) {
    let before = stream.stanzaCount
    let wasOpen = stream.state != .awaitingHeader && stream.state != .awaitingSecondHeader
    message.withUnsafeBytes { _ = feedStream(UnsafeRawBufferPointer(rebasing: $0[range])) }
    // RFC 7395 §3.3: one element a message, and all of it.
    if wasOpen, !isEnded, !isClosing, stream.isMidStanza || stream.stanzaCount &- before != 1 {
      fail(.badFormat, "A WebSocket message holds one stanza")
    }
  }

  private func feedStream(_ bytes: UnsafeRawBufferPointer) -> Int {
    let scratch = shard.scratch
    var offset = 0
    while let event = stream.next(
      bytes, &offset, scratch: &scratch.text, output: &scratch.reply, now: now)
    {
      sendReply()
      perform(event)
      if isEnded { return bytes.count }
    }
    sendReply()
    return offset
  }

  func ended(_ reason: ChannelEnd) {
    guard !isEnded else { return }
    finish("\(reason)")
  }

  func writable() {
    guard isStalled else { return }
    isStalled = false
    channel.resumeReading()
  }

  // MARK: Events of the machine

  private func perform(_ event: ServerEvent) {
    switch event {
    case .message(let head):
      guard let session else { return }
      shard.scratch.text.withUnsafeBytes { bytes in
        session.received(UnsafeRawBufferPointer(rebasing: bytes[head.text]), head)
      }
    case .authenticate(let credentials): authenticate(credentials)
    case .bound(let jid):
      bound(jid)
      // Keepalive and silence may be due before the login deadline was.
      if !isEnded { armTimer() }
    case .peerClosing:
      isClosing = true
      if session?.peerCloses() ?? true { close() }
    case .ended(let end):
      context.log.debug("A stream ended", ["peer": .init(peer), "end": .init("\(end)")])
      closeChannel()
      finish("\(end)")
    }
  }

  private func authenticate(_ credentials: PlainCredentials) {
    let identity = credentials.identity
    // Not a refusal: clients stop for good when their key is refused.
    guard !context.isDraining else { return fail(.systemShutdown, "The server is draining") }
    if let sender = SenderID(text: identity) {
      guard let project = context.accounts.project(sender),
        context.accounts.key(credentials.password, .server)?.sender == sender
      else { return refuse(identity, "app_server") }
      login = .sender(project, domain: credentials.domain ?? "gcm.googleapis.com")
      authenticated(identity)
      return
    }
    let (post, index, number) = (context.post, shard.index, number)
    let secret = try? Secrets.sha256(Array(credentials.password.utf8))
    context.store.credentials(of: identity) { result in
      post.post(
        .perform { shard in
          shard.worker?.connections[number]?.deviceFound(identity, secret: secret, result)
        }, to: index)
    }
  }

  private func deviceFound(
    _ identity: String, secret: [UInt8]?, _ result: Result<DeviceCredentials?, StoreFault>
  ) {
    guard !isEnded, stream.state == .awaitingVerdict else { return }
    guard case .success(let found) = result else {
      return tellRefused(.temporaryAuthFailure)
    }
    guard let found, let secret, Secrets.areEqual(found.secretHash, secret) else {
      return refuse(identity, "device")
    }
    login = .device(found, deviceID: identity)
    let home = shard.home(of: found.number)
    guard home != shard.index else { return authenticated(identity) }
    // A device lives on its home loop: the whole connection moves there.
    leave()
    let worker = context.workers[home]
    let handover = Handover(self)
    let isMoving = channel.move(to: worker.loop) { channel in
      let connection = handover.value
      connection.arrive(at: worker)
      channel.delegate = connection
      connection.authenticated(identity)
    }
    // A channel that has ended says so on this loop.
    if !isMoving { finish("ended during login") }
  }

  private func authenticated(_ identity: String) {
    leaveGate()
    var windowMax: Int?
    if case .sender = login { windowMax = context.limits.negotiatedWindow }
    stream.authenticated(local: identity, windowMax: windowMax, output: &shard.scratch.reply, now: now)
    sendReply()
    armTimer()
    resumeHeld()
  }

  private func refuse(_ identity: String, _ kind: String) {
    context.log.info(
      "A login was refused", ["peer": .init(peer), "kind": .init(kind), "identity": .init(identity)])
    let (worker, number) = (worker, number)
    let pause = context.loginGuard.failed(from: peer, now: now)
    worker.loop.after(pause) {
      worker.connections[number]?.tellRefused(.notAuthorized)
    }
  }

  private func tellRefused(_ failure: SASLFailure) {
    guard !isEnded, stream.state == .awaitingVerdict else { return }
    let event = stream.refused(failure, output: &shard.scratch.reply, now: now)
    sendReply()
    if let event { perform(event) } else { resumeHeld() }
  }

  private func resumeHeld() {
    guard !held.isEmpty, !isEnded else { return }
    let bytes = held
    held = []
    let taken = bytes.withUnsafeBytes { feed($0) }
    if taken < bytes.count, !isEnded { held = Array(bytes[taken...]) + held }
  }

  private func bound(_ jid: JID) {
    switch login {
    case .sender(let project, let domain):
      guard let session = AppServerSession(self, project: project, jid: jid, domain: domain) else {
        return fail(.policyViolation, "The sender has its maximum of streams")
      }
      self.session = session
    case .device(let credentials, let deviceID):
      session = DeviceSession(self, credentials: credentials, deviceID: deviceID)
    case nil:
      fail(.internalServerError, "Bound without a login")
    }
    context.log.debug("A stream was bound", ["jid": .init(jid.description), "peer": .init(peer)])
  }

  // MARK: For the session

  /// How its stanzas are to be written.
  var framing: PushStanzas.Framing { webSocket == nil ? .stream : .webSocket }

  /// Sends what `fill` appends: one stanza in ``framing``.
  func write(_ fill: (inout ByteWriter) -> Void) {
    guard !isEnded else { return }
    let scratch = shard.scratch
    scratch.output.removeAll()
    fill(&scratch.output)
    guard !isMute else { return }
    scratch.output.bytes.withUnsafeBytes { bytes in
      if let webSocket { webSocket.send(element: bytes, to: channel) } else { channel.send(bytes) }
    }
    sent()
  }

  private func sendReply() {
    let scratch = shard.scratch
    guard !scratch.reply.isEmpty else { return }
    guard !isMute else { return scratch.reply.removeAll() }
    scratch.reply.bytes.withUnsafeBytes { bytes in
      if let webSocket {
        webSocket.send(stream: bytes, scratch.webSocket, to: channel, now: now)
      } else {
        channel.send(bytes)
      }
    }
    scratch.reply.removeAll()
    sent()
  }

  private func sent() {
    stream.wrote(now: now)
    if channel.queuedBytes > context.limits.writeBacklogBytesMax / 2, !isStalled {
      // What it sends makes more for it to read: first it must take what waits. Past the mark the channel ends.
      isStalled = true
      channel.pauseReading()
    }
  }

  /// ``close()`` once the current callback has returned.
  func closeSoon() {
    let (worker, number) = (worker, number)
    worker.loop.later { worker.connections[number]?.close() }
  }

  func refuse(_ head: MessageHead, _ refusal: MessageRefusal) {
    stream.refuse(head, in: shard.scratch.text, refusal, output: &shard.scratch.reply)
    sendReply()
  }

  /// Ends the stream with an error.
  func fail(_ condition: StreamErrorCondition, _ text: String) {
    guard !isEnded else { return }
    stream.fail(condition, text: text, output: &shard.scratch.reply)
    sendReply()
    closeChannel()
    finish(text)
  }

  /// Says and hears nothing any more, and does not close: as a peer that lost its network.
  func mute() { isMute = true }

  /// Breaks the connection off.
  func cut() {
    guard !isEnded else { return }
    channel.abort()
    finish("cut")
  }

  /// Ends the stream in an orderly way.
  func close() {
    guard !isEnded else { return }
    stream.close(output: &shard.scratch.reply)
    sendReply()
    closeChannel()
    finish("closed")
  }

  private func closeChannel() {
    webSocket?.close(
      context.isDraining ? .goingAway : .normal, shard.scratch.webSocket, to: channel, now: now)
    channel.close()
  }

  /// The session has sent all it owed: true when that ends the stream, since the peer closed its side.
  var isPeerClosing: Bool { isClosing }

  private func finish(_ reason: String) {
    guard !isEnded else { return }
    isEnded = true
    leaveGate()
    timer?.cancel()
    timer = nil
    shard.now = now
    shard.wall = worker.loop.wall
    session?.ended()
    session = nil
    worker.connections[number] = nil
    shard.counters.connections.add(-1)
    context.log.debug("A connection ended", ["peer": .init(peer), "reason": .init(reason)])
  }

  // MARK: Loops and time

  private func leave() {
    leaveGate()
    timer?.cancel()
    timer = nil
    worker.connections[number] = nil
    shard.counters.connections.add(-1)
  }

  private func arrive(at worker: LoopWorker) {
    self.worker = worker
    number = worker.shard.nextStreamNumber()
    worker.connections[number] = self
    shard.counters.connections.add(1)
  }

  private func armTimer() {
    guard let due = stream.nextDeadline else { return }
    if let timer, timer.isActive, timer.deadline <= due { return }
    timer?.cancel()
    let (worker, number) = (worker, number)
    timer = worker.loop.after(max(.zero, due - now)) { worker.connections[number]?.timerFired() }
  }

  private func timerFired() {
    guard !isEnded else { return }
    let event = stream.deadlineReached(now: now, output: &shard.scratch.reply)
    sendReply()
    if let event { perform(event) }
    if !isEnded { armTimer() }
  }
}
