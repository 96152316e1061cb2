import Bytes
import Connections
import EventLoops
import PushModel
import PushXMPP
import Seams
import Stores
import TLSCore
import Telemetry
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

/// One XMPP connection of the server: a TLS channel, the stream machine, and after login a session.
///
/// Belongs to one loop at a time. It moves bytes and asks for credentials; the machine decides.
final class XMPPConnection: ChannelDelegate {
  let context: ServerContext
  private(set) var worker: LoopWorker
  let channel: Channel
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
  /// A fault that a test asked for: nothing is heard or said any more.
  private var isMute = false

  enum Login {
    case sender(Project, domain: String)
    case device(DeviceCredentials, deviceID: String)
  }

  init(worker: LoopWorker, channel: Channel) {
    self.worker = worker
    self.channel = channel
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
    channel.start()
    armTimer()
  }

  var shard: Shard { worker.shard }
  var now: Moment { worker.loop.now }

  // MARK: From the channel

  func received(_ bytes: UnsafeRawBufferPointer) {
    guard !isEnded, !isMute else { return }
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
    let scratch = shard.scratch
    shard.now = now
    shard.wall = worker.loop.wall
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
      channel.close()
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
    stream.authenticated(local: identity, output: &shard.scratch.reply, now: now)
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

  /// Sends what `fill` appends.
  func write(_ fill: (inout ByteWriter) -> Void) {
    guard !isEnded else { return }
    let scratch = shard.scratch
    scratch.output.removeAll()
    fill(&scratch.output)
    scratch.output.bytes.withUnsafeBytes { send($0) }
  }

  private func sendReply() {
    let scratch = shard.scratch
    guard !scratch.reply.isEmpty else { return }
    scratch.reply.bytes.withUnsafeBytes { send($0) }
    scratch.reply.removeAll()
  }

  private func send(_ bytes: UnsafeRawBufferPointer) {
    guard !isMute else { return }
    channel.send(bytes)
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
    channel.close()
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
    channel.close()
    finish("closed")
  }

  /// The session has sent all it owed: true when that ends the stream, since the peer closed its side.
  var isPeerClosing: Bool { isClosing }

  private func finish(_ reason: String) {
    guard !isEnded else { return }
    isEnded = true
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
