import Bytes
package import Seams
package import WebSocketCore
package import XMLCore
package import XMPPCore

/// What the WebSockets of one loop share while they read and write.
package final class WebSocketScratch {
  /// The message in hand.
  package var message: [UInt8] = []
  var output = ByteWriter()
  var element = ByteWriter()

  package init() {}
}

/// The WebSocket between a ``Channel`` and an XMPP stream, on either side: frames (RFC 6455) and framing (RFC 7395).
///
/// It moves with its channel, which each call is given.
package final class XMPPWebSocket {
  package enum Event {
    /// Feed this part of the scratch's message to the stream: one element or tag.
    case stream(Range<Int>)
    /// A ping or pong: a sign of life.
    case alive
    /// A message that is none of XMPP's; end the stream with this.
    case fault(StreamErrorCondition)
    /// Over; close the channel. The text is for the log.
    case ended(String)
  }

  private let machine: WebSocketConnection
  private var framing: WebSocketFraming

  /// - Parameters:
  ///   - messageBytesMax: Over it, close 1009.
  ///   - random: A source fit for secrets.
  package init(
    _ side: WebSocketFraming.Side, messageBytesMax: Int, seeOtherURI: String? = nil, now: Moment,
    random: @escaping @Sendable () -> UInt64
  ) {
    var limits = WebSocketLimits()
    limits.messageBytesMax = messageBytesMax
    // The stream's keepalives become pings, and its own deadline on silence awaits the answer.
    limits.pingAfter = nil
    machine = WebSocketConnection(
      side == .server ? .server : .client, limits: limits, now: now, random: random)
    framing = WebSocketFraming(side)
    framing.seeOtherURI = seeOtherURI
  }

  /// Where the server told a client to go.
  package var toldURI: String? { framing.toldURI }

  /// Takes bytes from the channel up to the next event.
  ///
  /// - Parameter limits: The stream's at this moment.
  package func next(
    _ chunk: UnsafeRawBufferPointer, _ offset: inout Int, limits: XMLLimits, _ scratch: WebSocketScratch,
    to channel: Channel, now: Moment
  ) -> Event? {
    let event = machine.next(
      chunk, &offset, scratch: &scratch.message, output: &scratch.output, now: now)
    defer { flush(scratch, channel) }
    switch event {
    case nil: return nil
    case .alive: return .alive
    case .ended(let end): return .ended("WebSocket: \(end)")
    case .message(.binary, _):
      machine.close(.unsupportedData, output: &scratch.output, now: now)
      return .ended("a binary message")
    case .message(.text, let range):
      let received = scratch.message.withUnsafeBytes {
        framing.receive(UnsafeRawBufferPointer(rebasing: $0[range]), limits: limits)
      }
      switch received {
      case .element: return .stream(range)
      case .tag(let tag):
        scratch.message.replaceSubrange(0..<min(tag.count, scratch.message.count), with: tag)
        return .stream(0..<tag.count)
      case .closed: return .ended("closed")
      case .fault(let condition): return .fault(condition)
      }
    }
  }

  /// Sends what the stream has written.
  package func send(
    stream bytes: UnsafeRawBufferPointer, _ scratch: WebSocketScratch, to channel: Channel, now: Moment
  ) {
    framing.send(bytes) { sent in
      switch sent {
      case .message(let text): machine.send(.text, text, output: &scratch.output)
      case .keepalive: machine.ping(output: &scratch.output, now: now)
      }
    }
    flush(scratch, channel)
  }

  /// Sends one element that says its namespaces.
  package func send(element bytes: UnsafeRawBufferPointer, to channel: Channel) {
    guard machine.state == .open else { return }
    channel.send(reserving: bytes.count + 14) {
      WebSocketFrame.write(.text, payload: bytes, mask: machine.nextMask(), to: $0)
    }
  }

  /// Sends one element of a stream, with the namespaces that the stream would have declared.
  package func send(stanza bytes: UnsafeRawBufferPointer, _ scratch: WebSocketScratch, to channel: Channel) {
    scratch.element.removeAll()
    WebSocketFraming.appendStandalone(bytes, to: &scratch.element)
    scratch.element.bytes.withUnsafeBytes { send(element: $0, to: channel) }
  }

  /// Sends the close frame; the caller closes the channel.
  package func close(_ code: CloseCode, _ scratch: WebSocketScratch, to channel: Channel, now: Moment) {
    machine.close(code, output: &scratch.output, now: now)
    flush(scratch, channel)
  }

  private func flush(_ scratch: WebSocketScratch, _ channel: Channel) {
    guard !scratch.output.isEmpty else { return }
    scratch.output.bytes.withUnsafeBytes { channel.send($0) }
    scratch.output.removeAll()
  }
}
