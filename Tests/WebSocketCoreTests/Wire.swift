import Bytes
import Seams
import WebSocketCore

let start = Moment(ns: 0)

/// A frame, byte by byte from RFC 6455 §5.2: not with the code under test.
func frame(
  _ opcode: UInt8, _ payload: [UInt8] = [], final: Bool = true, reserved: UInt8 = 0, key: [UInt8]? = nil
) -> [UInt8] {
  var bytes: [UInt8] = [(final ? 0x80 : 0) | reserved << 4 | opcode]
  let mask: UInt8 = key == nil ? 0 : 0x80
  switch payload.count {
  case 0..<126: bytes.append(mask | UInt8(payload.count))
  case 126...0xFFFF: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
  default: bytes += [mask | 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
  }
  guard let key else { return bytes + payload }
  return bytes + key + payload.enumerated().map { $0.element ^ key[$0.offset % 4] }
}

let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]

/// A client's frame.
func masked(_ opcode: UInt8, _ payload: [UInt8] = [], final: Bool = true, reserved: UInt8 = 0) -> [UInt8] {
  frame(opcode, payload, final: final, reserved: reserved, key: key)
}

func masked(_ opcode: UInt8, _ text: String, final: Bool = true) -> [UInt8] {
  masked(opcode, Array(text.utf8), final: final)
}

/// What a side made of its input.
struct Heard: Equatable {
  var messages: [[UInt8]] = []
  var contents: [MessageContent] = []
  var end: WebSocketEnd?
  var output: [UInt8] = []

  var texts: [String] { messages.map { String(decoding: $0, as: UTF8.self) } }
}

/// Feeds pieces to a new connection.
func hear(
  _ pieces: [[UInt8]], as role: WebSocketConnection.Role = .server,
  limits: WebSocketLimits = WebSocketLimits()
) -> Heard {
  let connection = WebSocketConnection(role, limits: limits, now: start, random: { 0x0102_0304 })
  var heard = Heard()
  var scratch: [UInt8] = []
  var output = ByteWriter()
  for piece in pieces {
    piece.withUnsafeBytes { chunk in
      var offset = 0
      while let event = connection.next(chunk, &offset, scratch: &scratch, output: &output, now: start) {
        switch event {
        case .message(let content, let range):
          heard.messages.append(Array(scratch[range]))
          heard.contents.append(content)
        case .alive: break
        case .ended(let end): heard.end = end
        }
      }
    }
  }
  heard.output = output.bytes
  return heard
}

/// The same input whole, byte by byte, in halves at every place, and cut at random.
func cuts(of bytes: [UInt8]) -> [[[UInt8]]] {
  var all: [[[UInt8]]] = [bytes.map { [$0] }]
  for place in 0...bytes.count where bytes.count < 2_000 || place % 1_013 < 2 {
    all.append([Array(bytes[..<place]), Array(bytes[place...])])
  }
  var chance = SeededChance(seed: 6_455)
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

/// `hear` with the input whole; nil if any cut of it came to something else.
func hearAnyWay(
  _ bytes: [UInt8], as role: WebSocketConnection.Role = .server, limits: WebSocketLimits = WebSocketLimits()
) -> Heard? {
  let whole = hear([bytes], as: role, limits: limits)
  for pieces in cuts(of: bytes) where hear(pieces, as: role, limits: limits) != whole { return nil }
  return whole
}
