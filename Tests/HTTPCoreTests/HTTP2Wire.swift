import Bytes
import CNghttp2
import HTTPCore
import Seams
import Testing

/// A frame of HTTP/2, written by hand so that it may be wrong.
struct Frame: Equatable {
  enum Kind: UInt8 {
    case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
  }

  static let endStream: UInt8 = 1
  static let endHeaders: UInt8 = 4
  static let ack: UInt8 = 1

  var kind: Kind
  var flags: UInt8 = 0
  var stream: UInt32 = 0
  var payload: [UInt8] = []

  var bytes: [UInt8] {
    let count = payload.count
    return [
      UInt8(truncatingIfNeeded: count >> 16), UInt8(truncatingIfNeeded: count >> 8), UInt8(count & 0xFF),
    ]
      + [kind.rawValue, flags] + number(stream) + payload
  }

  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  static func settings(_ pairs: (UInt16, UInt32)...) -> Frame {
    Frame(
      kind: .settings,
      payload: pairs.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 0xFF)] + number($0.1) })
  }

  static func windowUpdate(_ stream: UInt32, _ count: UInt32) -> Frame {
    Frame(kind: .windowUpdate, stream: stream, payload: number(count))
  }

  static func reset(_ stream: UInt32, _ code: UInt32 = 8) -> Frame {
    Frame(kind: .reset, stream: stream, payload: number(code))
  }

  static func data(_ stream: UInt32, _ text: String, isLast: Bool = true) -> Frame {
    Frame(kind: .data, flags: isLast ? endStream : 0, stream: stream, payload: Array(text.utf8))
  }

  static func headers(
    _ stream: UInt32, _ fields: [(String, String)], isLast: Bool = false, isWhole: Bool = true
  ) -> Frame {
    Frame(
      kind: .headers, flags: (isLast ? endStream : 0) | (isWhole ? endHeaders : 0), stream: stream,
      payload: block(fields))
  }

  /// A POST, whose body is to come.
  static func post(_ stream: UInt32, _ more: [(String, String)] = [], path: String = "/") -> Frame {
    headers(
      stream,
      [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", path)] + more)
  }

  static func get(_ stream: UInt32, _ more: [(String, String)] = [], path: String = "/") -> Frame {
    headers(
      stream, [(":method", "GET"), (":scheme", "https"), (":authority", "h"), (":path", path)] + more,
      isLast: true)
  }

  /// Literals without indexing (RFC 7541 §6.2.2).
  static func block(_ fields: [(String, String)]) -> [UInt8] {
    fields.flatMap { [UInt8(0)] + text($0.0) + text($0.1) }
  }

  private static func text(_ text: String) -> [UInt8] {
    var count = text.utf8.count
    guard count >= 127 else { return [UInt8(count)] + Array(text.utf8) }
    var length: [UInt8] = [127]
    count -= 127
    while count >= 128 {
      length.append(UInt8(count & 127) | 128)
      count >>= 7
    }
    return length + [UInt8(count)] + Array(text.utf8)
  }

  /// The frames of an output, which must be whole.
  static func all(_ bytes: [UInt8]) throws -> [Frame] {
    var frames: [Frame] = []
    var rest = bytes[...]
    while rest.count >= 9 {
      let head = Array(rest.prefix(9))
      let count = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
      rest = rest.dropFirst(9)
      try #require(rest.count >= count)
      frames.append(
        Frame(
          kind: try #require(Kind(rawValue: head[3])), flags: head[4], stream: value(head[5...]),
          payload: Array(rest.prefix(count))))
      rest = rest.dropFirst(count)
    }
    try #require(rest.isEmpty)
    return frames
  }
}

/// Four bytes, most significant first.
func number(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

func value(_ bytes: some Sequence<UInt8>) -> UInt32 { bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }

/// A server connection and what a client sees of it.
final class HTTP2Peer {
  let connection: HTTP2ServerConnection
  var now = start
  /// Requests that were handed out, in order.
  private(set) var arrivals: [HTTP2Arrival] = []
  /// All that the server sent.
  private(set) var bytes: [UInt8] = []
  private var inflater: OpaquePointer?
  private var seen = 0

  init(limits: HTTPLimits = HTTPLimits(), _ settings: Frame = .settings(), greets: Bool = true) throws {
    connection = HTTP2ServerConnection(limits: limits, now: start)
    nghttp2_hd_inflate_new(&inflater)
    if greets {
      send(Frame.preface)
      send(settings, Frame(kind: .settings, flags: Frame.ack))
    }
  }

  deinit { nghttp2_hd_inflate_del(inflater) }

  func send(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { connection.receive($0, now: now, wall: wall) }
    arrivals += connection.takeArrivals()
    flush()
  }

  func send(_ frames: Frame...) { send(frames.flatMap(\.bytes)) }

  func flush() {
    connection.flush(now: now)
    bytes += connection.output.bytes
    connection.output.removeAll()
  }

  func respond(_ stream: Int32, _ response: HTTPResponse) {
    connection.respond(stream, response, now: now, wall: wall)
    flush()
  }

  func wait(_ duration: Duration) {
    now = now + duration
    connection.timeout(now: now, wall: wall)
    flush()
  }

  func drain() {
    connection.drain(now: now)
    flush()
  }

  /// The frames that came since the last call.
  func frames() throws -> [Frame] {
    let all = try Frame.all(bytes)
    defer { seen = all.count }
    return Array(all.dropFirst(seen))
  }

  /// Stream, status and fields of the heads among some frames, which must be all of the connection in order.
  func heads(_ frames: [Frame]) throws -> [(stream: UInt32, status: Int, fields: [String: String])] {
    try frames.filter { $0.kind == .headers }.map { frame in
      var fields: [String: String] = [:]
      var rest = frame.payload
      while !rest.isEmpty {
        var pair = nghttp2_nv()
        var flags: Int32 = 0
        let used = nghttp2_hd_inflate_hd2(inflater, &pair, &flags, rest, rest.count, 1)
        try #require(used > 0)
        if UInt32(flags) & NGHTTP2_HD_INFLATE_EMIT.rawValue != 0 {
          let name = String(
            decoding: UnsafeBufferPointer(start: pair.name, count: pair.namelen), as: UTF8.self)
          fields[name] = String(
            decoding: UnsafeBufferPointer(start: pair.value, count: pair.valuelen), as: UTF8.self)
        }
        rest.removeFirst(used)
      }
      nghttp2_hd_inflate_end_headers(inflater)
      return (frame.stream, Int(fields[":status"] ?? "") ?? 0, fields)
    }
  }

  /// Error codes of the frames that ended streams.
  func resets(_ frames: [Frame]) -> [UInt32: UInt32] {
    frames.filter { $0.kind == .reset }.reduce(into: [:]) { $0[$1.stream] = value($1.payload) }
  }

  /// Last stream and error code of each GOAWAY.
  func farewells(_ frames: [Frame]) -> [[UInt32]] {
    frames.filter { $0.kind == .goAway }.map { [value($0.payload), value($0.payload.dropFirst(4))] }
  }
}

let calm: UInt32 = 11
