// modules: Bytes Seams HTTPCore
import Bytes
import HTTPCore
import Seams

/// The first byte says where the rest is cut; the rest comes behind the preface and settings.
///
/// Whole and cut input must come to the same requests; tunnels are let in and send back what comes; whatever is sent the output stays in proportion, and every
/// connection comes to an end when its peer does.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP2Server(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let start, count > 1 else { return 0 }
  let bytes = UnsafeRawBufferPointer(start: start + 1, count: count - 1)
  let place = Int(start[0]) % bytes.count
  let whole = talk([bytes])
  let cut = talk([
    UnsafeRawBufferPointer(rebasing: bytes[..<place]), UnsafeRawBufferPointer(rebasing: bytes[place...]),
  ])
  guard whole == cut else { fatalError("cut input means something else") }
  return 0
}

private let beginning = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

private let accepted = HTTPResponse(status: 200, fields: ["sec-websocket-protocol": "xmpp"])

/// Gives back what comes through tunnels, and ends them with their peer.
private func echo(_ connection: HTTP2ServerConnection) {
  for event in connection.takeTunnelEvents() {
    switch event.what {
    case .bytes(let bytes):
      connection.send(event.stream, bytes)
      connection.consumed(event.stream, bytes.count)
    case .end: connection.finish(event.stream)
    case .closed:
      guard connection.bytesQueued(event.stream) == 0 else { fatalError("a closed tunnel holds bytes") }
    }
  }
}

private func talk(_ pieces: [UnsafeRawBufferPointer]) -> [HTTPRequest] {
  let now = Moment(ns: 0)
  let wall = WallTime(ms: 0)
  let connection = HTTP2ServerConnection(now: now)
  var requests: [HTTPRequest] = []
  var outputBytes = 0
  var unanswered: [Int32] = []
  func receive(_ bytes: UnsafeRawBufferPointer) {
    connection.receive(bytes, now: now, wall: wall)
    for arrival in connection.takeArrivals() {
      requests.append(arrival.request)
      if arrival.request.tunnel != nil, connection.accept(arrival.stream, accepted, now: now, wall: wall) {
        continue
      }
      unanswered.append(arrival.stream)
    }
    echo(connection)
    connection.flush(now: now)
    echo(connection)
  }
  beginning.withUnsafeBytes { receive($0) }
  for piece in pieces { receive(piece) }
  // Every other request is answered by its body, last first; the others never.
  for (index, stream) in unanswered.enumerated().reversed() where index.isMultiple(of: 2) {
    connection.respond(
      stream, HTTPResponse(status: 403, fields: ["x-y": "z"], body: requests[index].body), now: now,
      wall: wall)
  }
  connection.flush(now: now)
  connection.drain(now: now)
  connection.flush(now: now)
  outputBytes = connection.output.count
  guard outputBytes <= 64 * 1024 + 64 * pieces.reduce(0, { $0 + $1.count }) else {
    fatalError("\(outputBytes) bytes")
  }
  connection.receiveEnd(now: now)
  let later = now + .seconds(3_600)
  connection.timeout(now: later, wall: wall)
  for stream in unanswered { connection.respond(stream, HTTPResponse(status: 200), now: later, wall: wall) }
  connection.flush(now: later)
  connection.timeout(now: later + .seconds(3_600), wall: wall)
  connection.flush(now: later + .seconds(3_600))
  guard connection.isDone else { fatalError("an ended connection is not done") }
  return requests
}
