// modules: Bytes Seams HTTPCore
import Bytes
import HTTPCore
import Seams

/// The first byte says where the rest is cut.
///
/// Whole and cut input must come to the same requests and answers.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTPServer(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
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

private struct Heard: Equatable {
  var requests: [HTTPRequest] = []
  var output: [UInt8] = []
}

private func talk(_ pieces: [UnsafeRawBufferPointer]) -> Heard {
  let now = Moment(ns: 0)
  let wall = WallTime(ms: 0)
  let connection = HTTPServerConnection(now: now)
  var heard = Heard()
  for piece in pieces {
    var next = connection.receive(piece, now: now, wall: wall)
    while let request = next {
      heard.requests.append(request)
      next = connection.respond(HTTPResponse(status: 200), now: now, wall: wall)
    }
  }
  connection.receiveEnd(wall: wall)
  guard connection.isDone else { fatalError("an ended connection is not done") }
  heard.output = connection.output.bytes
  return heard
}
