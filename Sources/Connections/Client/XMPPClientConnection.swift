import Bytes
package import DeliveryCore
package import EventLoops
import Seams
import WebSocketCore
import XMLCore
import XMPPCore

/// One XMPP stream of a client over TLS, or over a WebSocket on TLS.
///
/// Moves bytes between a ``Channel`` and a `ClientStream`, keeps their one timer, and reports to its owner. Belongs
/// to its loop.
package final class XMPPClientConnection: ClientConnection, ChannelDelegate {
  /// What the streams of one loop share while they read.
  private final class Scratch {
    var text: [UInt8] = []
    var output = ByteWriter()
    let webSocket = WebSocketScratch()
  }

  private let endpoint: ClientEndpoint
  private let number: StreamNumber
  private let loop: any Loop
  private let scratch: Scratch
  /// Nil once the stream is over; nothing is reported then.
  private var owner: (any ClientConnectionOwner)?
  private var connector: ChannelConnector?
  private var channel: Channel?
  /// Until the server has agreed to speak WebSocket.
  private var handshake: ClientHandshake?
  private var webSocket: XMPPWebSocket?
  private var stream: ClientStream?
  private var timer: LoopTimer?
  /// When the attempt to open the stream is given up; nil once it is open.
  private var openDeadline: Moment?
  /// Since when bytes wait that the server does not read.
  private var blockedSince: Moment?
  private var isEnding = false

  package init(
    _ endpoint: ClientEndpoint, stream: StreamNumber, on loop: any Loop,
    owner: any ClientConnectionOwner
  ) {
    self.endpoint = endpoint
    number = stream
    self.loop = loop
    self.owner = owner
    scratch = loop.local(Scratch.self) { Scratch() }
  }

  // MARK: Calls

  package func connect() {
    openDeadline = loop.now + endpoint.connectTimeout
    connector = ChannelConnector.connect(
      host: endpoint.host, port: endpoint.port, name: endpoint.certificateName,
      context: endpoint.context, timeout: endpoint.connectTimeout, on: loop
    ) { [weak self] in self?.connected($0) }
  }

  package func write(_ stanza: UnsafeRawBufferPointer) {
    guard let channel, let stream, stream.state == .ready else { return }
    if let webSocket {
      webSocket.send(stanza: stanza, scratch.webSocket, to: channel)
    } else {
      channel.send(stanza)
    }
    stream.wrote(now: loop.now)
    if blockedSince == nil, channel.queuedBytes > 1 << 20 {
      blockedSince = loop.now
      armTimer()
    }
  }

  package func end() {
    guard owner != nil, !isEnding else { return }
    isEnding = true
    guard let stream else {
      connector?.cancel()
      loop.later { [self] in over(StreamClosure(.ended)) }
      return
    }
    let event = stream.close(output: &scratch.output, now: loop.now)
    sendOutput()
    armTimer()
    if event != nil { loop.later { [self] in over(StreamClosure(.ended)) } }
  }

  package func abort() {
    owner = nil
    connector?.cancel()
    channel?.abort()
    cleanUp()
  }

  // MARK: Channel

  private func connected(_ result: Result<Channel, ChannelEnd>) {
    connector = nil
    switch result {
    case .failure(let reason):
      over(StreamClosure(reason.isTimeout ? .timedOut : .connectFailed, reason.description))
    case .success(let channel):
      guard owner != nil, !isEnding else {
        channel.abort()
        return
      }
      self.channel = channel
      channel.delegate = self
      channel.backlogBytesMax = endpoint.backlogBytesMax
      channel.setUserTimeout(endpoint.limits.deadAfter)
      if let path = endpoint.webSocketPath {
        shakeHands(channel, path)
      } else {
        openStream()
      }
    }
  }

  private func shakeHands(_ channel: Channel, _ path: String) {
    let name = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
    let handshake = ClientHandshake(
      host: endpoint.port == 443 ? name : "\(name):\(endpoint.port)", path: path, subprotocol: "xmpp",
      random: { [loop] in loop.random() })
    channel.send(handshake.request)
    self.handshake = handshake
    armTimer()
  }

  /// - Returns: Bytes of the answer; those behind it are of the WebSocket.
  private func receivedAnswer(_ plaintext: UnsafeRawBufferPointer) -> Int {
    var offset = 0
    do throws(HandshakeFault) {
      guard try handshake?.receive(plaintext, &offset) == true else { return offset }
      handshake = nil
      webSocket = XMPPWebSocket(
        .client, messageBytesMax: endpoint.limits.stanzaBytesMax, now: loop.now,
        random: { [loop] in loop.random() })
      openStream()
    } catch {
      over(StreamClosure(.connectFailed, error.description))
    }
    return offset
  }

  private func openStream() {
    let stream = ClientStream(login: endpoint.login, limits: endpoint.limits, now: loop.now)
    self.stream = stream
    stream.open(output: &scratch.output, now: loop.now)
    sendOutput()
    armTimer()
  }

  package func received(_ plaintext: UnsafeRawBufferPointer) {
    var offset = 0
    if handshake != nil {
      offset = receivedAnswer(plaintext)
      guard handshake == nil else { return }
    }
    guard let webSocket else {
      feed(UnsafeRawBufferPointer(rebasing: plaintext[offset...]))
      return
    }
    while let stream, let channel, owner != nil,
      let event = webSocket.next(
        plaintext, &offset, limits: stream.xmlLimits, scratch.webSocket, to: channel, now: loop.now)
    {
      switch event {
      case .stream(let range):
        let message = scratch.webSocket.message
        message.withUnsafeBytes { feed(UnsafeRawBufferPointer(rebasing: $0[range])) }
      case .alive: " ".utf8.withContiguousStorageIfAvailable { feed(UnsafeRawBufferPointer($0)) }
      case .fault(let condition):
        over(StreamClosure(.protocolBroken, "a WebSocket message that is no XMPP: \(condition.rawValue)"))
      case .ended(let reason): over(StreamClosure(isEnding ? .ended : .lost, reason))
      }
    }
  }

  private func feed(_ plaintext: UnsafeRawBufferPointer) {
    guard let stream else { return }
    var offset = 0
    while owner != nil,
      let event = stream.next(
        plaintext, &offset, scratch: &scratch.text, output: &scratch.output, now: loop.now)
    {
      perform(event)
    }
    sendOutput()
  }

  package func writable() { blockedSince = nil }

  package func ended(_ reason: ChannelEnd) {
    guard owner != nil else { return }
    channel = nil
    if isEnding {
      over(StreamClosure(.ended))
    } else {
      over(StreamClosure(.lost, reason.description))
    }
  }

  // MARK: Events

  private func perform(_ event: ClientEvent) {
    switch event {
    case .message(let head):
      scratch.text.withUnsafeBytes { bytes in
        // proof: the reader gives ranges of the buffer it filled.
        owner?.received(
          UnsafeRawBufferPointer(rebasing: bytes[head.text]),
          id: head.id.map { UnsafeRawBufferPointer(rebasing: bytes[$0]) }, kind: head.kind, on: number)
      }
    case .ready:
      openDeadline = nil
      armTimer()
      owner?.opened(number, window: stream?.grantedWindow)
    case .refused(let refused):
      if let id = refused.id { owner?.refused(id, refused.text, on: number) }
    case .ended(let end):
      var closure = StreamClosure(end, isEnding: isEnding)
      closure.retryAfter = stream?.retryAfter
      over(closure)
    }
  }

  private func sendOutput() {
    guard !scratch.output.isEmpty else { return }
    if let channel {
      scratch.output.bytes.withUnsafeBytes { bytes in
        if let webSocket {
          webSocket.send(stream: bytes, scratch.webSocket, to: channel, now: loop.now)
        } else {
          channel.send(bytes)
        }
      }
      stream?.wrote(now: loop.now)
    }
    scratch.output.removeAll()
  }

  private func over(_ end: StreamClosure) {
    sendOutput()
    if let channel { webSocket?.close(.normal, scratch.webSocket, to: channel, now: loop.now) }
    channel?.close()
    cleanUp()
    guard let owner else { return }
    self.owner = nil
    owner.closed(number, end)
  }

  private func cleanUp() {
    channel?.delegate = nil
    channel = nil
    handshake = nil
    webSocket = nil
    stream = nil
    connector = nil
    timer?.cancel()
    timer = nil
  }

  // MARK: Time

  private var nextDeadline: Moment? {
    var next = stream?.nextDeadline
    for moment in [openDeadline, blockedSince.map({ $0 + endpoint.limits.deadAfter })] {
      if let moment { next = next.map { min($0, moment) } ?? moment }
    }
    return next
  }

  /// The timer is never later than the deadline; one that fires too early is armed again.
  private func armTimer() {
    guard let deadline = nextDeadline else { return }
    if let timer, timer.isActive, timer.deadline <= deadline { return }
    timer?.cancel()
    timer = loop.after(deadline - loop.now) { [weak self] in self?.timerFired() }
  }

  private func timerFired() {
    timer = nil
    guard owner != nil else { return }
    let now = loop.now
    if let openDeadline, openDeadline <= now {
      over(StreamClosure(.timedOut, "not logged in in time"))
      return
    }
    guard let stream else {
      armTimer()
      return
    }
    if let since = blockedSince, since + endpoint.limits.deadAfter <= now {
      over(StreamClosure(.timedOut, "the server does not read"))
      return
    }
    let event = stream.deadlineReached(now: now, output: &scratch.output)
    sendOutput()
    if let event { perform(event) }
    if owner != nil { armTimer() }
  }
}

extension ChannelEnd {
  fileprivate var isTimeout: Bool {
    if case .network(let fault) = self { fault.isTimeout } else { false }
  }
}

extension StreamClosure {
  fileprivate init(_ end: ClientEnd, isEnding: Bool) {
    switch end {
    case .closed: self.init(isEnding ? .ended : .peerEnded)
    case .failed(let fault):
      switch fault {
      // Not for ever: the server could not look the credentials up.
      case .loginRefused(.temporaryAuthFailure): self.init(.connectFailed, "temporary-auth-failure")
      case .loginRefused(let failure): self.init(.loginRefused, failure.rawValue)
      case .mechanismMissing: self.init(.protocolBroken, "the server offers no PLAIN")
      case .bindingRefused(let condition): self.init(.protocolBroken, "binding refused: \(condition)")
      case .streamError("conflict", let text): self.init(.replaced, text ?? "conflict")
      case .streamError(let condition, let text):
        self.init(.streamError, text.map { "\(condition): \($0)" } ?? condition)
      case .xml(let fault): self.init(.protocolBroken, "\(fault)")
      case .unexpected(let state): self.init(.protocolBroken, "unexpected element, \(state)")
      case .overdue(let state): self.init(.timedOut, "\(state)")
      case .closedEarly(let state): self.init(.peerEnded, "\(state)")
      case .silent: self.init(.timedOut, "no sign of the server")
      }
    }
  }
}
