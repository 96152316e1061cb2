import CNghttp2
package import Seams

/// Something that came through a tunnel.
package struct HTTP2TunnelEvent: Sendable, Equatable {
  package enum What: Sendable, Equatable {
    /// Say when they are taken: ``HTTP2ServerConnection/consumed(_:_:)``.
    case bytes([UInt8])
    /// The peer has said all.
    case end
    /// Both sides have said all, or one has given up; nothing follows.
    case closed
  }

  package var stream: Int32
  package var what: What

  package init(stream: Int32, what: What) {
    self.stream = stream
    self.what = what
  }
}

/// Streams that carry another protocol in both directions: RFC 8441.
///
/// A tunnel has no deadline of its own; who speaks through it has.
extension HTTP2ServerConnection {
  /// Lets an extended CONNECT in; bytes that came early follow at once.
  ///
  /// - Returns: false, with no effect, when its stream is gone or is no tunnel.
  package func accept(_ number: Int32, _ response: HTTPResponse, now: Moment, wall: WallTime) -> Bool {
    guard phase != .closed, let session, let stream = streams[number], stream.state == .awaitingAnswer,
      stream.isTunnel
    else { return false }
    self.now = now
    self.wall = wall
    let early = stream.body
    stream.body = []
    stream.bodySent = 0
    guard HTTP2Fields.open(response, on: stream, date: dates.text(wall), session: session) else {
      reset(stream, NGHTTP2_INTERNAL_ERROR)
      return false
    }
    stream.state = .tunnel
    if !early.isEmpty { tunnelEvents.append(HTTP2TunnelEvent(stream: number, what: .bytes(early))) }
    if stream.isRemoteDone { tunnelEvents.append(HTTP2TunnelEvent(stream: number, what: .end)) }
    return true
  }

  /// What came through tunnels, in order; to be asked after every call that takes bytes or flushes.
  package func takeTunnelEvents() -> [HTTP2TunnelEvent] {
    guard !tunnelEvents.isEmpty else { return [] }
    let taken = tunnelEvents
    tunnelEvents = []
    return taken
  }

  package var hasTunnels: Bool { phase != .closed && streams.values.contains { $0.state == .tunnel } }

  /// Bytes were taken: the peer may send so many more.
  package func consumed(_ number: Int32, _ count: Int) {
    guard phase != .closed, let session, let stream = streams[number], stream.state == .tunnel else { return }
    let count = min(count, stream.bytesHeld)
    stream.bytesHeld -= count
    bodyBytesHeld -= count
    nghttp2_session_consume_stream(session, number, count)
  }

  /// Sends bytes as the peer's window lets them pass; the caller bounds ``bytesQueued(_:)``.
  package func send(_ number: Int32, _ bytes: [UInt8]) {
    guard phase != .closed, let session, let stream = streams[number], stream.state == .tunnel,
      !stream.isFinishing
    else { return }
    stream.queue(bytes)
    nghttp2_session_resume_data(session, number)
  }

  /// Bytes for a tunnel's peer that no frame holds yet.
  package func bytesQueued(_ number: Int32) -> Int {
    guard phase != .closed, let stream = streams[number], stream.state == .tunnel else { return 0 }
    return stream.bytesQueued
  }

  /// Ends our side behind what is queued, as FIN does.
  package func finish(_ number: Int32) {
    guard phase != .closed, let session, let stream = streams[number], stream.state == .tunnel else { return }
    stream.isFinishing = true
    nghttp2_session_resume_data(session, number)
  }

  /// Gives a tunnel up, as RST does; one that the peer has ended, and whose bytes are sent, ends in order.
  package func cancel(_ number: Int32) {
    guard phase != .closed, let stream = streams[number], stream.state == .tunnel else { return }
    if stream.isRemoteDone, stream.bytesQueued == 0 {
      finish(number)
    } else {
      reset(stream, stream.isFinishing && stream.bytesQueued == 0 ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL)
    }
  }

  /// The room of the whole connection is given back at once, so that a tunnel nobody reads does not stop the others;
  /// what all may hold together has the bound of bodies.
  func tunnelBytesCame(_ bytes: UnsafeRawBufferPointer, on stream: HTTP2Stream, _ session: OpaquePointer) {
    nghttp2_session_consume_connection(session, bytes.count)
    guard !stream.isGivenUp else { return }
    guard bytes.count <= limits.bodyBytesHeldMax - bodyBytesHeld else {
      reset(stream, NGHTTP2_REFUSED_STREAM)
      return
    }
    stream.bytesHeld += bytes.count
    bodyBytesHeld += bytes.count
    if stream.state == .tunnel {
      tunnelEvents.append(HTTP2TunnelEvent(stream: stream.number, what: .bytes(Array(bytes))))
    } else {
      stream.body += bytes
    }
  }
}
