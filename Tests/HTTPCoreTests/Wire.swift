import Bytes
import HTTPCore
import Seams

let start = Moment(ns: 0)
let wall = WallTime(ms: 784_111_777_000)

/// What a conversation came to.
struct Heard: Equatable {
  var requests: [HTTPRequest] = []
  var output = ""
  var isDone = false

  /// The status codes of the answers, in order.
  var statuses: [Int] {
    output.matches(of: #/HTTP/1\.1 (\d{3}) /#).compactMap { Int($0.1) }
  }
}

/// Feeds pieces to a server connection whose requests are answered at once with their body.
func talk(_ pieces: [[UInt8]], limits: HTTPLimits = HTTPLimits(), ends: Bool = false) -> Heard {
  let connection = HTTPServerConnection(limits: limits, now: start)
  var heard = Heard()
  for piece in pieces {
    var next = piece.withUnsafeBytes { connection.receive($0, now: start, wall: wall) }
    while let request = next {
      heard.requests.append(request)
      next = connection.respond(
        HTTPResponse(status: 200, fields: ["x-target": request.target], body: request.body), now: start,
        wall: wall)
    }
  }
  if ends { connection.receiveEnd(wall: wall) }
  heard.output = String(decoding: connection.output.bytes, as: UTF8.self)
  heard.isDone = connection.isDone
  return heard
}

/// The same input whole, byte by byte, in halves at every place, and cut at random.
func cuts(of bytes: [UInt8]) -> [[[UInt8]]] {
  var all: [[[UInt8]]] = [bytes.map { [$0] }]
  for place in 0...bytes.count where bytes.count < 2_000 || place % 211 == 0 {
    all.append([Array(bytes[..<place]), Array(bytes[place...])])
  }
  var chance = SeededChance(seed: 19)
  for _ in 0..<20 {
    var pieces: [[UInt8]] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = Int.random(in: 1...max(1, min(rest.count, 40)), using: &chance)
      pieces.append(Array(rest.prefix(count)))
      rest = rest.dropFirst(count)
    }
    all.append(pieces)
  }
  return all
}

/// `talk` with the input whole; nil if any cut of it came to something else.
func talkAnyWay(_ text: String, limits: HTTPLimits = HTTPLimits(), ends: Bool = false) -> Heard? {
  talkAnyWay(Array(text.utf8), limits: limits, ends: ends)
}

func talkAnyWay(_ bytes: [UInt8], limits: HTTPLimits = HTTPLimits(), ends: Bool = false) -> Heard? {
  let whole = talk([bytes], limits: limits, ends: ends)
  for pieces in cuts(of: bytes) where talk(pieces, limits: limits, ends: ends) != whole { return nil }
  return whole
}
