package import Bytes
import CNghttp2
package import Seams

/// A request of one stream.
package struct HTTP2Arrival: Sendable {
  /// For ``HTTP2ServerConnection/respond(_:_:now:wall:)``.
  package var stream: Int32
  package var request: HTTPRequest
}

/// One HTTP/2 connection seen from the server, without a socket: bytes and time in, requests and bytes out.
///
/// nghttp2 reads and writes frames; the limits, deadlines and the patience with useless frames are here. Many
/// requests at a time, answered in any order.
///
/// The driver: give what was read to ``receive(_:now:wall:)`` and run the requests of ``takeArrivals()``; give
/// answers to ``respond(_:_:now:wall:)``; at the end of a round call ``flush(now:)``, write ``output`` and empty it;
/// arm one timer for ``nextDeadline``; close once ``isDone`` and the output is written. An extended CONNECT arrives as a
/// request with a `tunnel`; it is answered as any other, or let in (see `accept`).
///
/// - Source: RFC 9113, RFC 8441; the guards answer CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2024-28182 and CVE-2025-8671.
package final class HTTP2ServerConnection {
  /// How far the end of the connection is.
  ///
  /// `serving` → `announced` (the client is asked to open no more streams) → `ending` (streams opened since are
  /// refused) → `closed`.
  enum Phase { case serving, announced, ending, closed }

  /// Bytes for the peer.
  ///
  /// The driver writes them and empties it.
  package var output = ByteWriter()

  let limits: HTTPLimits
  private(set) var phase = Phase.serving
  private(set) var session: OpaquePointer?
  var streams: [Int32: HTTP2Stream] = [:]
  /// The stream whose header block is being read; blocks are never interleaved.
  var reading: HTTP2Stream?
  /// Of the call in progress.
  var now: Moment
  var wall = WallTime(ms: 0)

  private var arrivals: [HTTP2Arrival] = []
  private var pool: [HTTP2Stream] = []
  var dates = HTTPDateCache()
  /// What came through tunnels and was not taken by the driver.
  var tunnelEvents: [HTTP2TunnelEvent] = []
  private var resets: TokenBucket
  private var useless: TokenBucket
  /// Bytes of bodies whose requests are not answered, and of tunnels that nobody has taken.
  var bodyBytesHeld = 0
  private var isPrefaceDue = true
  /// Given up for a fault of the peer: nothing that still comes is looked at.
  private var isCutOff = false
  private var headDue: Moment?
  private var idleDue: Moment?
  private var sweepDue: Moment?
  private var endingDue: Moment?

  package init(limits: HTTPLimits = HTTPLimits(), now: Moment) {
    self.limits = limits
    self.now = now
    resets = TokenBucket(burst: limits.resetsMax, perSecond: limits.resetsPerSecond, now: now)
    useless = TokenBucket(burst: limits.uselessFramesMax, perSecond: limits.uselessFramesPerSecond, now: now)
    headDue = now + limits.headTimeout
    session = HTTP2Callbacks.shared.makeSession(for: self)
    guard let session else {
      phase = .closed
      return
    }
    let settings = [
      entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streamsMax),
      entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindowBytes),
      entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.headBytesMax),
      entry(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
      entry(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1),
    ]
    nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
    nghttp2_session_set_local_window_size(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(clamping: limits.connectionWindowBytes))
  }

  deinit {
    // Streams that are open end without callbacks: this object is past them.
    if let session { nghttp2_session_del(session) }
  }

  private func entry(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
    nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(clamping: value))
  }

  /// Whether a connection begins as HTTP/2 does.
  ///
  /// RFC 9113 §3.4.
  package static func isPreface(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let preface: StaticString = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    return preface.withUTF8Buffer { bytes.prefix($0.count).elementsEqual($0) }
  }

  // MARK: What is so

  /// No request will come any more and all is answered; close when the output is written.
  package var isDone: Bool { phase == .closed }

  /// Whether a request is read or answered, or a drain's notice has not been followed by its farewell; tunnels are no
  /// requests.
  package var isBusy: Bool {
    phase != .closed && (phase == .announced || streams.values.contains { $0.state != .tunnel })
  }

  /// Whether the answer of a stream is still wanted.
  package func awaits(_ stream: Int32) -> Bool { streams[stream]?.state == .awaitingAnswer }

  /// When ``timeout(now:)`` is due.
  package var nextDeadline: Moment? {
    guard phase != .closed else { return nil }
    return [headDue, idleDue, sweepDue, endingDue].compactMap { $0 }.min()
  }

  // MARK: From the driver

  /// Takes bytes from the peer.
  package func receive(_ bytes: UnsafeRawBufferPointer, now: Moment, wall: WallTime) {
    guard phase != .closed, let session, !bytes.isEmpty else { return }
    self.now = now
    self.wall = wall
    let code = nghttp2_session_mem_recv(
      session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    // Faults of the peer that its library can be told of were answered by nghttp2; here are the others.
    if code < 0 {
      end(code == NGHTTP2_ERR_FLOODED.rawValue ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR)
    }
    checkIdle()
  }

  /// Requests that have come whole, each to be answered once.
  package func takeArrivals() -> [HTTP2Arrival] {
    guard !arrivals.isEmpty else { return [] }
    let taken = arrivals
    arrivals = []
    return taken
  }

  /// Answers a request.
  ///
  /// Does nothing when its stream is gone.
  package func respond(_ number: Int32, _ response: HTTPResponse, now: Moment, wall: WallTime) {
    guard phase != .closed, let stream = streams[number], stream.state == .awaitingAnswer else { return }
    self.now = now
    self.wall = wall
    submit(response, on: stream)
  }

  /// Appends all frames that may be sent to the output.
  package func flush(now: Moment) {
    guard phase != .closed, let session else { return }
    self.now = now
    var hasFailed = false
    while true {
      var bytes: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(session, &bytes)
      hasFailed = count < 0
      guard count > 0, let bytes else { break }
      output.append(UnsafeRawBufferPointer(start: bytes, count: count))
    }
    checkIdle()
    let isQuiet = nghttp2_session_want_write(session) == 0 && nghttp2_session_want_read(session) == 0
    if hasFailed || isCutOff || (isQuiet && phase != .announced) { close() }
  }

  /// Finishes: asks the client for no more streams, later refuses them, and ends when all are answered.
  package func drain(now: Moment) {
    guard phase == .serving, let session else { return }
    self.now = now
    phase = .announced
    nghttp2_submit_shutdown_notice(session)
    // Its answer shows that the client has read the notice.
    nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
    endingDue = now + limits.drainNotice
  }

  /// The peer will send no more; what is whole is still answered.
  package func receiveEnd(now: Moment) {
    guard phase != .closed else { return }
    self.now = now
    for stream in streams.values where stream.state == .reading || stream.state == .tunnel { forget(stream) }
    if streams.isEmpty { close() } else { beginEnding() }
  }

  /// To be called when ``nextDeadline`` has come.
  ///
  /// Before it, nothing happens.
  package func timeout(now: Moment, wall: WallTime) {
    guard phase != .closed else { return }
    self.now = now
    self.wall = wall
    if let due = headDue, due <= now {
      headDue = nil
      end(isPrefaceDue ? NGHTTP2_SETTINGS_TIMEOUT : NGHTTP2_ENHANCE_YOUR_CALM)
    }
    if let due = idleDue, due <= now {
      idleDue = nil
      beginEnding()
    }
    if let due = endingDue, due <= now { beginEnding() }
    if let due = sweepDue, due <= now { sweep() }
  }

  // MARK: Streams

  func openStream(_ number: Int32, hasWholeHead: Bool) {
    let stream = pool.popLast() ?? HTTP2Stream()
    stream.open(number, deadline: now + limits.headTimeout)
    streams[number] = stream
    reading = stream
    idleDue = nil
    if !hasWholeHead { headDue = now + limits.headTimeout }
    arm(stream)
  }

  /// A header block has come whole.
  func headCame(on number: Int32, isLast: Bool) {
    headDue = nil
    reading = nil
    guard let stream = streams[number], stream.state == .reading else {
      if isLast { endCame(on: number) }
      return
    }
    if !stream.isHeadDone {
      stream.isHeadDone = true
      if let fault = stream.headFault(limits) {
        refuse(stream, fault, isRemoteDone: isLast)
        return
      }
      if stream.isTunnel {
        if isLast {
          refuse(stream, .malformed, isRemoteDone: true)
        } else {
          complete(stream, isRemoteDone: false)
        }
        return
      }
      if !isLast {
        stream.deadline = now + limits.bodyTimeout
        continueIfAwaited(stream)
      }
    }
    if isLast { complete(stream) }
  }

  func bodyCame(_ bytes: UnsafeRawBufferPointer, on number: Int32) {
    guard let session else { return }
    guard let stream = streams[number] else {
      nghttp2_session_consume(session, number, bytes.count)
      return
    }
    if stream.isTunnel, stream.state != .answering { return tunnelBytesCame(bytes, on: stream, session) }
    nghttp2_session_consume(session, number, bytes.count)
    guard stream.state == .reading else {
      stream.bytesIgnored += bytes.count
      if stream.bytesIgnored > limits.bodyBytesMax { stopSending(stream) }
      return
    }
    guard bytes.count <= limits.bodyBytesMax - stream.body.count else {
      refuse(stream, .bodyTooLarge, isRemoteDone: false)
      return
    }
    guard bytes.count <= limits.bodyBytesHeldMax - bodyBytesHeld else {
      // Others of this connection fill the room: a refused stream was not worked on and may be tried again.
      reset(stream, NGHTTP2_REFUSED_STREAM)
      return
    }
    stream.append(bytes, limit: limits.bodyBytesMax)
    bodyBytesHeld += bytes.count
  }

  func endCame(on number: Int32) {
    guard let stream = streams[number] else { return }
    switch stream.state {
    case .reading: complete(stream)
    case .awaitingAnswer, .answering: stream.isRemoteDone = true
    case .tunnel:
      guard !stream.isRemoteDone else { return }
      stream.isRemoteDone = true
      tunnelEvents.append(HTTP2TunnelEvent(stream: number, what: .end))
    }
  }

  func streamClosed(_ number: Int32) {
    guard let stream = streams.removeValue(forKey: number) else { return }
    bodyBytesHeld -= stream.bytesHeld
    if stream.state == .tunnel { tunnelEvents.append(HTTP2TunnelEvent(stream: number, what: .closed)) }
    if reading === stream { reading = nil }
    if pool.count < 64 {
      stream.clear()
      pool.append(stream)
    }
  }

  /// A frame of ours with END_STREAM has left.
  ///
  /// A client that still sends its body has a moment to read the answer: some take a reset at once for the answer.
  func answerSent(on number: Int32) {
    guard let stream = streams[number], !stream.isRemoteDone, stream.state != .tunnel else { return }
    stream.deadline = now + limits.refusedTimeout
    stream.isAnswerSent = true
    arm(stream)
  }

  /// The answer is complete; the rest of the request is not wanted (RFC 9113 §8.1).
  private func stopSending(_ stream: HTTP2Stream) {
    guard !stream.isRemoteDone else { return }
    stream.isRemoteDone = true
    reset(stream, NGHTTP2_NO_ERROR)
  }

  private func complete(_ stream: HTTP2Stream, isRemoteDone: Bool = true) {
    stream.isRemoteDone = isRemoteDone
    guard !isCutOff else { return }
    switch stream.makeRequest(limits) {
    case .success(let request):
      stream.state = .awaitingAnswer
      stream.deadline = nil
      useless.refund(4, now: now)
      arrivals.append(HTTP2Arrival(stream: stream.number, request: request))
    case .failure(let fault): refuse(stream, fault, isRemoteDone: true)
    }
  }

  private func refuse(_ stream: HTTP2Stream, _ fault: HTTPFault, isRemoteDone: Bool) {
    stream.isRemoteDone = isRemoteDone
    stream.body = []
    submit(fault.response, on: stream)
  }

  func reset(_ stream: HTTP2Stream, _ code: nghttp2_error_code) {
    guard let session else { return }
    // A tunnel's owner hears of its end when nghttp2 has closed it.
    if stream.state != .tunnel { stream.state = .answering }
    stream.isGivenUp = true
    nghttp2_submit_rst_stream(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.number, UInt32(code.rawValue))
  }

  /// Ends a stream that the peer cannot finish any more.
  private func forget(_ stream: HTTP2Stream) { reset(stream, NGHTTP2_CANCEL) }

  /// RFC 9110 §10.1.1.
  private func continueIfAwaited(_ stream: HTTP2Stream) {
    guard let session, stream.fields.has("expect") else { return }
    HTTP2Fields.withContinue { fields in
      _ = nghttp2_submit_headers(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.number, nil, fields.baseAddress, fields.count, nil)
    }
  }

  private func submit(_ response: HTTPResponse, on stream: HTTP2Stream) {
    guard let session else { return }
    let isSent = HTTP2Fields.submit(
      response, on: stream, date: dates.text(wall), session: session, isHead: stream.isHead)
    guard isSent else {
      reset(stream, NGHTTP2_INTERNAL_ERROR)
      return
    }
    bodyBytesHeld -= stream.bytesHeld
    stream.bytesHeld = 0
    stream.state = .answering
    // From here on the client's window decides: one that never opens it must not hold the answer for ever.
    stream.deadline = now + limits.answerTimeout
    arm(stream)
  }

  // MARK: Time and patience

  /// A sweep looks at all streams when the earliest deadline that was set comes.
  private func arm(_ stream: HTTP2Stream) {
    guard let due = stream.deadline else { return }
    sweepDue = min(sweepDue ?? due, due)
  }

  private func sweep() {
    sweepDue = nil
    var next: Moment?
    for stream in streams.values {
      guard let due = stream.deadline else { continue }
      if due > now {
        next = min(next ?? due, due)
        continue
      }
      stream.deadline = nil
      switch stream.state {
      case .answering where stream.isAnswerSent: stopSending(stream)
      case .reading where stream.isHeadDone: refuse(stream, .late, isRemoteDone: false)
      case .reading, .answering: reset(stream, NGHTTP2_CANCEL)
      case .awaitingAnswer, .tunnel: break
      }
    }
    if let next { sweepDue = min(sweepDue ?? next, next) }
  }

  private func checkIdle() {
    guard phase != .closed, streams.isEmpty, !isPrefaceDue else { return }
    if idleDue == nil { idleDue = now + limits.idleTimeout }
  }

  func settingsCame() {
    if isPrefaceDue {
      isPrefaceDue = false
      headDue = nil
    }
  }

  func pingAnswered() {
    if phase == .announced { beginEnding() }
  }

  /// A stream was given up before its answer, by the peer or for a fault of the peer.
  func countReset() {
    if !resets.take(now: now) { end(NGHTTP2_ENHANCE_YOUR_CALM) }
  }

  /// A frame that carries nothing towards a request.
  func countUseless() {
    if !useless.take(now: now) { end(NGHTTP2_ENHANCE_YOUR_CALM) }
  }

  private func beginEnding() {
    guard phase == .serving || phase == .announced, let session else { return }
    phase = .ending
    endingDue = nil
    nghttp2_submit_goaway(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session),
      UInt32(NGHTTP2_NO_ERROR.rawValue), nil, 0)
  }

  /// Ends the connection with the next flush; nothing more is answered.
  private func end(_ code: nghttp2_error_code) {
    guard let session, phase != .closed else { return }
    phase = .ending
    isCutOff = true
    arrivals = []
    nghttp2_session_terminate_session(session, UInt32(code.rawValue))
  }

  private func close() {
    phase = .closed
    streams = [:]
    reading = nil
  }
}

/// Allows a burst and then a rate.
struct TokenBucket {
  private let burst: Int64
  private let perSecond: Int64
  /// In billionths, so that a rate of one a second adds one a nanosecond.
  private var level: Int64
  private var last: Moment

  init(burst: Int, perSecond: Int, now: Moment) {
    self.burst = Int64(clamping: min(max(burst, 1), 1_000_000)) * 1_000_000_000
    self.perSecond = Int64(clamping: min(max(perSecond, 0), 1_000_000))
    level = self.burst
    last = now
  }

  /// - Returns: false when nothing was left.
  mutating func take(now: Moment) -> Bool {
    fill(now)
    guard level >= 1_000_000_000 else { return false }
    level -= 1_000_000_000
    return true
  }

  mutating func refund(_ count: Int64, now: Moment) {
    level = min(burst, level + count * 1_000_000_000)
  }

  private mutating func fill(_ now: Moment) {
    let (gain, overflow) = max(0, now.ns &- last.ns).multipliedReportingOverflow(by: perSecond)
    level = overflow ? burst : min(burst, level.addingReportingOverflow(gain).overflow ? burst : level + gain)
    last = now
  }
}
