import CNghttp2

/// What nghttp2 calls, and the options of its sessions; made once.
// Sendable by argument: nghttp2 copies both into each session and nothing here changes them after `init`.
final class HTTP2Callbacks: @unchecked Sendable {
  static let shared = HTTP2Callbacks()

  private var callbacks: OpaquePointer?
  private var option: OpaquePointer?

  private init() {
    guard nghttp2_session_callbacks_new(&callbacks) == 0, nghttp2_option_new(&option) == 0 else { return }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, onBeginHeaders)
    nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, onBeginFrame)
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrame)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onData)
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onStreamClose)
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, onFrameSent)
    // Closed streams are of no use without the old priorities.
    nghttp2_option_set_no_closed_streams(option, 1)
    nghttp2_option_set_max_continuations(option, 8)
    nghttp2_option_set_max_settings(option, 32)
    nghttp2_option_set_max_outbound_ack(option, 1_000)
    // A tunnel's window opens as its reader takes bytes; any other as they come.
    nghttp2_option_set_no_auto_window_update(option, 1)
  }

  /// Nil when there is no memory.
  func makeSession(for connection: HTTP2ServerConnection) -> OpaquePointer? {
    guard let callbacks, let option else { return nil }
    var session: OpaquePointer?
    let user = Unmanaged.passUnretained(connection).toOpaque()
    guard nghttp2_session_server_new2(&session, callbacks, user, option) == 0 else { return nil }
    return session
  }
}

private func object(_ user: UnsafeMutableRawPointer?) -> Unmanaged<HTTP2ServerConnection>? {
  user.map { Unmanaged<HTTP2ServerConnection>.fromOpaque($0) }
}

private let endOfStream = UInt8(NGHTTP2_FLAG_END_STREAM.rawValue)

private func onBeginHeaders(
  _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let frame else { return 0 }
  let head = frame.pointee.hd
  object(user)?._withUnsafeGuaranteedRef { connection in
    if frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST {
      let isWhole = head.flags & UInt8(NGHTTP2_FLAG_END_HEADERS.rawValue) != 0
      connection.openStream(head.stream_id, hasWholeHead: isWhole)
    } else {
      connection.reading = connection.streams[head.stream_id]
    }
  }
  return 0
}

private func onHeader(
  _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ name: UnsafePointer<UInt8>?,
  _ nameCount: Int, _ value: UnsafePointer<UInt8>?, _ valueCount: Int, _ flags: UInt8,
  _ user: UnsafeMutableRawPointer?
) -> Int32 {
  let isTaken = object(user)?._withUnsafeGuaranteedRef { connection in
    guard let stream = connection.reading else { return true }
    return stream.add(
      name: UnsafeRawBufferPointer(start: name, count: nameCount),
      value: UnsafeRawBufferPointer(start: value, count: valueCount), limits: connection.limits)
  }
  return isTaken == false ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue : 0
}

private func onBeginFrame(
  _ session: OpaquePointer?, _ head: UnsafePointer<nghttp2_frame_hd>?, _ user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let head = head?.pointee else { return 0 }
  switch UInt32(head.type) {
  case NGHTTP2_DATA.rawValue where head.length == 0 && head.flags & endOfStream == 0,
    NGHTTP2_PING.rawValue, NGHTTP2_SETTINGS.rawValue, NGHTTP2_PRIORITY.rawValue,
    NGHTTP2_WINDOW_UPDATE.rawValue, NGHTTP2_PUSH_PROMISE.rawValue:
    object(user)?._withUnsafeGuaranteedRef { $0.countUseless() }
  default: break
  }
  return 0
}

private func onFrame(
  _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let frame else { return 0 }
  let head = frame.pointee.hd
  object(user)?._withUnsafeGuaranteedRef { connection in
    switch UInt32(head.type) {
    case NGHTTP2_HEADERS.rawValue:
      connection.headCame(on: head.stream_id, isLast: head.flags & endOfStream != 0)
    case NGHTTP2_DATA.rawValue:
      if head.flags & endOfStream != 0 { connection.endCame(on: head.stream_id) }
    case NGHTTP2_SETTINGS.rawValue: connection.settingsCame()
    case NGHTTP2_PING.rawValue where head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0:
      connection.pingAnswered()
    case NGHTTP2_RST_STREAM.rawValue: connection.countReset()
    default: break
    }
  }
  return 0
}

private func onData(
  _ session: OpaquePointer?, _ flags: UInt8, _ stream: Int32, _ bytes: UnsafePointer<UInt8>?, _ count: Int,
  _ user: UnsafeMutableRawPointer?
) -> Int32 {
  object(user)?._withUnsafeGuaranteedRef {
    $0.bodyCame(UnsafeRawBufferPointer(start: bytes, count: count), on: stream)
  }
  return 0
}

private func onStreamClose(
  _ session: OpaquePointer?, _ stream: Int32, _ code: UInt32, _ user: UnsafeMutableRawPointer?
) -> Int32 {
  object(user)?._withUnsafeGuaranteedRef { $0.streamClosed(stream) }
  return 0
}

private func onFrameSent(
  _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let frame else { return 0 }
  let head = frame.pointee.hd
  switch UInt32(head.type) {
  case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
    if head.flags & endOfStream != 0 {
      object(user)?._withUnsafeGuaranteedRef { $0.answerSent(on: head.stream_id) }
    }
  case NGHTTP2_RST_STREAM.rawValue:
    // A peer that makes us reset streams, one after the other, is as costly as one that resets them itself.
    if frame.pointee.rst_stream.error_code != UInt32(NGHTTP2_NO_ERROR.rawValue) {
      object(user)?._withUnsafeGuaranteedRef { $0.countReset() }
    }
  default: break
  }
  return 0
}
