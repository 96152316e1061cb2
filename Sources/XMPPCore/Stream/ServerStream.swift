package import Bytes
package import Seams
package import XMLCore

/// The accepting side of one XMPP stream: bytes and time in, events and bytes out (RFC 6120).
///
/// Header, SASL PLAIN, restart, resource binding, session, pings, errors and deadlines are dealt with here;
/// the driver moves bytes, looks credentials up and handles messages. One object per connection, used by one
/// thread at a time.
///
/// ```
/// var offset = 0
/// while let event = stream.next(chunk, &offset, scratch: &scratch, output: &output, now: now) { … }
/// ```
package final class ServerStream {
  /// What the stream waits for.
  package enum State: Hashable, Sendable, CaseIterable {
    /// The first header → `awaitingLogin`.
    case awaitingHeader
    /// `auth` → `awaitingVerdict`, or `awaitingResponse` when it carries nothing.
    case awaitingLogin
    /// The answer to an empty challenge → `awaitingVerdict`.
    case awaitingResponse
    /// The driver's word on credentials → `awaitingSecondHeader` or `awaitingLogin`.
    case awaitingVerdict
    /// The header after login → `awaitingBind`.
    case awaitingSecondHeader
    /// A resource → `bound`.
    case awaitingBind
    /// Stanzas.
    case bound
    /// The driver's end tag, the peer's having come → `ended`.
    case awaitingClose
    /// Nothing any more. Every state can go here.
    case ended
  }

  package internal(set) var state = State.awaitingHeader
  /// Full address, once bound.
  package internal(set) var jid: JID?
  /// The stream's `to` as the peer sent it last.
  package internal(set) var host: String?
  /// Unanswered messages that the peer may have, when it asked for a window and got one.
  package internal(set) var window: Int?

  let limits: StreamLimits
  let domain: String
  let random: @Sendable () -> UInt64
  var framer: StanzaFramer
  var context = StreamContext.usual
  var login: String?
  /// Largest window that is granted; nil offers none.
  var windowOffer: Int?
  /// The peer's `auth` said that it knows of windows.
  var knowsWindows = false
  var failedLogins = 0
  var isHeaderSent = false
  var isEndSent = false
  var pings: Int64 = 0
  var isPinged = false
  var deadline: Moment
  var lastInput: Moment
  var lastOutput: Moment

  /// - Parameters:
  ///   - domain: Domain of the addresses handed out, and `from` of a header when the peer names no host.
  ///   - random: A source fit for secrets: stream ids and resources come from it.
  package init(
    limits: StreamLimits = StreamLimits(), domain: String = "gcm.googleapis.com", now: Moment,
    random: @escaping @Sendable () -> UInt64
  ) {
    self.limits = limits
    self.domain = domain
    self.random = random
    framer = StanzaFramer(
      limits: XMLLimits(
        bytesMax: limits.stanzaBytesMaxBeforeLogin, depthMax: limits.depthMax,
        attributesMax: limits.attributesMax))
    deadline = now + limits.loginWithin
    lastInput = now
    lastOutput = now
  }

  /// Takes bytes from the peer up to the next event.
  ///
  /// - Parameters:
  ///   - chunk: Decrypted bytes, cut anywhere.
  ///   - offset: Where to go on in `chunk`; moved past what was taken. It stays short of the end while the
  ///     driver's verdict is awaited: feed the rest after it.
  ///   - scratch: Where the ranges of a message point to.
  ///   - output: Gets what is to be sent.
  /// - Returns: nil when nothing more can be taken now.
  package func next(
    _ chunk: UnsafeRawBufferPointer, _ offset: inout Int, scratch: inout [UInt8],
    output: inout ByteWriter, now: Moment
  ) -> ServerEvent? {
    guard offset < chunk.count else { return nil }
    lastInput = now
    isPinged = false
    while true {
      switch state {
      case .awaitingVerdict: return nil
      case .awaitingClose, .ended:
        offset = chunk.count
        return nil
      case .awaitingHeader, .awaitingLogin, .awaitingResponse, .awaitingSecondHeader, .awaitingBind, .bound:
        break
      }
      do throws(XMLFault) {
        guard let item = try framer.next(chunk, &offset) else { return nil }
        if let event = try take(item, &scratch, &output, now) { return event }
      } catch {
        return end(with: StreamErrorCondition(error), "\(error)", &output)
      }
    }
  }

  /// Stanzas taken so far, and whether another has begun: for a transport that has one in each message.
  package var stanzaCount: UInt32 { framer.stanzaCount }
  package var isMidStanza: Bool { framer.isMidItem }
  package var xmlLimits: XMLLimits { framer.limits }

  /// Tells that bytes went out, for the keepalive.
  ///
  /// Once a round is enough.
  package func wrote(now: Moment) { lastOutput = now }

  /// Ends the stream in an orderly way: writes the end tag, once.
  package func close(output: inout ByteWriter) {
    guard state != .ended else { return }
    sendHeader(&output)
    sendEnd(&output)
  }

  /// Ends the stream with an error, as for a replaced stream or a drain that ran out of time.
  package func fail(_ condition: StreamErrorCondition, text: String? = nil, output: inout ByteWriter) {
    guard state != .ended else { return }
    sendHeader(&output)
    output.appendStreamError(
      condition, text: text, retryAfter: condition == .systemShutdown ? limits.retryAfterShutdown : nil)
    sendEnd(&output)
  }

  /// Gives a message back with a stanza error.
  ///
  /// Only while bound.
  ///
  /// - Parameter scratch: The buffer that `head` points into.
  package func refuse(
    _ head: MessageHead, in scratch: [UInt8], _ refusal: MessageRefusal, output: inout ByteWriter
  ) {
    guard let jid else { return }
    scratch.withUnsafeBytes { bytes in
      func part(_ range: Range<Int>?) -> UnsafeRawBufferPointer? {
        guard let range, range.upperBound <= bytes.count else { return nil }
        return UnsafeRawBufferPointer(rebasing: bytes[range])
      }
      output.appendStanzaError(refusal, id: part(head.id), to: jid, json: part(head.text))
    }
  }

  // MARK: Items

  private func take(
    _ item: FramedItem, _ scratch: inout [UInt8], _ output: inout ByteWriter, _ now: Moment
  ) throws(XMLFault) -> ServerEvent? {
    switch item {
    case .stanza(let stanza):
      if state == .bound, let head = NarrowReader.read(stanza, into: &scratch) {
        // RFC 6120 §8.3.1: an error is never answered, so nobody needs to see it.
        return head.kind == .error ? nil : .message(head)
      }
      let element = try ElementReader.read(stanza, in: context, limits: framer.limits)
      return receive(element, &scratch, &output, now)
    case .whitespace:
      return nil
    case .header(let tag, let selfClosed):
      return receive(try ElementReader.readHeader(tag, limits: framer.limits), selfClosed, &output)
    case .end:
      guard state == .bound else {
        sendEnd(&output)
        return .ended(.closed)
      }
      state = .awaitingClose
      deadline = now + limits.closeWithin
      return .peerClosing
    }
  }

  // MARK: Ends

  func end(with condition: StreamErrorCondition, _ detail: String, _ output: inout ByteWriter) -> ServerEvent
  {
    fail(condition, output: &output)
    return .ended(.faulted(condition, detail))
  }

  /// RFC 6120 §4.9.1.2: an error before the header comes after one.
  func sendHeader(_ output: inout ByteWriter) {
    guard !isHeaderSent else { return }
    isHeaderSent = true
    output.appendServerHeader(from: host ?? domain, id: random())
  }

  func sendEnd(_ output: inout ByteWriter) {
    if !isEndSent { output.appendStreamEnd() }
    isEndSent = true
    state = .ended
  }
}
