package import Bytes
package import Seams
package import XMLCore

/// The opening side of one XMPP stream: the counterpart of ``ServerStream``, for app servers and devices.
///
/// Call ``open(output:now:)`` once connected, then feed bytes. One object per connection, used by one thread
/// at a time.
package final class ClientStream {
  /// What the stream waits for.
  ///
  /// They follow each other in this order; every one can go to `ended`.
  package enum State: Hashable, Sendable, CaseIterable {
    /// ``ClientStream/open(output:now:)``.
    case idle
    case awaitingHeader
    case awaitingFeatures
    case awaitingSuccess
    case awaitingSecondHeader
    case awaitingSecondFeatures
    case awaitingBinding
    /// Only when the server demands a session (RFC 3921 §3).
    case awaitingSession
    /// Stanzas.
    case ready
    /// The server's end tag after ours; messages still come.
    case awaitingEnd
    case ended
  }

  package internal(set) var state = State.idle
  /// Full address, once bound.
  package internal(set) var jid: JID?
  /// Unanswered messages that the server allows, when it was asked and has said so.
  package internal(set) var grantedWindow: Int?
  /// How long the server asked to be left alone when it ended the stream.
  package internal(set) var retryAfter: Duration?

  let limits: StreamLimits
  let login: ClientLogin
  /// The steps of the login were all sent with the first header.
  var isPipelined: Bool { login.isPipelined && login.window == nil }
  var framer: StanzaFramer
  var context = StreamContext.usual
  var needsSession = false
  /// The server said that the window can be asked for.
  var offersWindow = false
  var isEndSent = false
  var pings: Int64 = 0
  var isPinged = false
  var deadline: Moment
  var lastInput: Moment
  var lastOutput: Moment

  package init(login: ClientLogin, limits: StreamLimits = StreamLimits(), now: Moment) {
    self.login = login
    self.limits = limits
    framer = StanzaFramer(
      limits: XMLLimits(
        bytesMax: limits.stanzaBytesMax, depthMax: limits.depthMax, attributesMax: limits.attributesMax))
    deadline = now + limits.loginWithin
    lastInput = now
    lastOutput = now
  }

  /// Sends the first header, and what may follow at once.
  ///
  /// Once.
  package func open(output: inout ByteWriter, now: Moment) {
    guard state == .idle else { return }
    output.appendClientHeader(to: login.host)
    if isPipelined {
      sendCredentials(&output)
      output.appendClientHeader(to: login.host)
      askForBinding(&output)
    }
    wait(for: .awaitingHeader, now)
  }

  /// Takes bytes from the server up to the next event.
  ///
  /// - Parameters: As for ``ServerStream/next(_:_:scratch:output:now:)``.
  /// - Returns: nil when the chunk is used up.
  package func next(
    _ chunk: UnsafeRawBufferPointer, _ offset: inout Int, scratch: inout [UInt8],
    output: inout ByteWriter, now: Moment
  ) -> ClientEvent? {
    guard offset < chunk.count else { return nil }
    lastInput = now
    isPinged = false
    while state != .ended {
      do throws(XMLFault) {
        guard let item = try framer.next(chunk, &offset) else { return nil }
        if let event = try take(item, &scratch, &output, now) { return event }
      } catch {
        if !isEndSent { output.appendStreamError(StreamErrorCondition(error), text: nil) }
        return end(.failed(.xml(error)), &output)
      }
    }
    offset = chunk.count
    return nil
  }

  /// Stanzas taken so far, and whether another has begun: for a transport that has one in each message.
  package var stanzaCount: UInt32 { framer.stanzaCount }
  package var isMidStanza: Bool { framer.isMidItem }
  package var xmlLimits: XMLLimits { framer.limits }

  /// Tells that bytes went out, for the keepalive.
  ///
  /// Once a round is enough.
  package func wrote(now: Moment) { lastOutput = now }

  /// Sends the end tag and awaits the server's.
  ///
  /// What still comes is reported until then.
  ///
  /// - Returns: The end, when the stream was never ready: then nothing is awaited.
  package func close(output: inout ByteWriter, now: Moment) -> ClientEvent? {
    switch state {
    case .ready:
      sendEnd(&output)
      deadline = now + limits.closeWithin
      state = .awaitingEnd
      return nil
    case .idle:
      state = .ended
      return .ended(.closed)
    case .awaitingHeader, .awaitingFeatures, .awaitingSuccess, .awaitingSecondHeader,
      .awaitingSecondFeatures, .awaitingBinding, .awaitingSession:
      return end(.closed, &output)
    case .awaitingEnd, .ended:
      return nil
    }
  }

  // MARK: Items

  func take(
    _ item: FramedItem, _ scratch: inout [UInt8], _ output: inout ByteWriter, _ now: Moment
  ) throws(XMLFault) -> ClientEvent? {
    switch item {
    case .whitespace:
      return nil
    case .header(let tag, let selfClosed):
      let header = try ElementReader.readHeader(tag, limits: framer.limits)
      context = header.context
      if selfClosed { return end(.failed(.closedEarly(state)), &output) }
      switch state {
      case .awaitingHeader: wait(for: .awaitingFeatures, now)
      case .awaitingSecondHeader: wait(for: .awaitingSecondFeatures, now)
      default: return unexpected(&output)
      }
      return nil
    case .end:
      switch state {
      case .ready, .awaitingEnd: return end(.closed, &output)
      default: return end(.failed(.closedEarly(state)), &output)
      }
    case .stanza(let stanza):
      if state == .ready || state == .awaitingEnd, let head = NarrowReader.read(stanza, into: &scratch),
        head.kind != .error
      {
        return .message(head)
      }
      let element = try ElementReader.read(stanza, in: context, limits: framer.limits)
      if element.isNamed("error", Namespace.streams) { return receive(streamError: element, &output) }
      switch state {
      case .ready, .awaitingEnd: return receive(element, &scratch, &output)
      default: return receive(step: element, &output, now)
      }
    }
  }

  func receive(streamError element: XMLElement, _ output: inout ByteWriter) -> ClientEvent {
    let parts = element.elements.filter { $0.namespace == QueryNamespace.streamErrors }
    let condition = parts.first { $0.name != "text" }?.name ?? "undefined-condition"
    let text = parts.first { $0.name == "text" }?.text
    let pause = element.child("retry-after", ExtensionNamespace.retry)?.attribute("seconds")
    retryAfter = pause.flatMap { ExtensionNamespace.number($0, in: 0...3_600) }.map { .seconds($0) }
    return end(.failed(.streamError(condition, text: text)), &output)
  }

  // MARK: Ends

  func wait(for next: State, _ now: Moment) {
    state = next
    deadline = now + limits.loginWithin
  }

  func unexpected(_ output: inout ByteWriter) -> ClientEvent {
    end(.failed(.unexpected(state)), &output)
  }

  func end(_ end: ClientEnd, _ output: inout ByteWriter) -> ClientEvent {
    sendEnd(&output)
    state = .ended
    return .ended(end)
  }

  func sendEnd(_ output: inout ByteWriter) {
    if !isEndSent { output.appendStreamEnd() }
    isEndSent = true
  }
}
