// modules: Bytes Seams HTTPCore WebSocketCore
import Bytes
import HTTPCore
import Seams
import WebSocketCore

/// Bytes of a peer into a WebSocket connection of either side, and into both opening handshakes.
///
/// Holds that cuts change nothing, that text is UTF-8, that no more is held than is allowed, that frames written from
/// what was read are read as the same, and that at most one close is sent.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzWebSocket(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: start == nil ? 0 : count))
  guard let first = input.first else { return 0 }
  let role: WebSocketConnection.Role = first & 1 == 0 ? .server : .client
  // With masks of their own, random inputs hardly ever get past the first frame.
  let bytes = Array(input.dropFirst())
  let whole = hear([bytes], role)
  guard hear(bytes.map { [$0] }, role) == whole else {
    fatalError("single bytes are heard as something else")
  }
  let cut = min(bytes.count, Int(first >> 1))
  guard hear([Array(bytes[..<cut]), Array(bytes[cut...])], role) == whole else {
    fatalError("halves are heard as something else")
  }
  for (content, message) in whole.messages where content == .text {
    guard String(validating: message, as: UTF8.self) != nil else { fatalError("text that is none") }
  }
  writeAgain(whole, role)
  shake(bytes)
  return 0
}

private struct Heard: Equatable {
  var messages: [(MessageContent, [UInt8])] = []
  var end: WebSocketEnd?
  var output: [UInt8] = []

  static func == (left: Heard, right: Heard) -> Bool {
    left.messages.elementsEqual(right.messages, by: ==) && left.end == right.end
      && left.output == right.output
  }
}

private func limits() -> WebSocketLimits {
  var limits = WebSocketLimits()
  limits.messageBytesMax = 300
  limits.fragmentsMax = 5
  return limits
}

private func hear(_ pieces: [[UInt8]], _ role: WebSocketConnection.Role) -> Heard {
  let now = Moment(ns: 0)
  let connection = WebSocketConnection(role, limits: limits(), now: now, random: { 0x0506_0708 })
  var heard = Heard()
  var scratch: [UInt8] = []
  var output = ByteWriter()
  for piece in pieces {
    piece.withUnsafeBytes { chunk in
      var offset = 0
      while let event = connection.next(chunk, &offset, scratch: &scratch, output: &output, now: now) {
        switch event {
        case .message(let content, let range): heard.messages.append((content, Array(scratch[range])))
        case .alive: break
        case .ended(let end):
          guard heard.end == nil else { fatalError("ended twice") }
          heard.end = end
        }
      }
      guard offset == chunk.count else { fatalError("bytes were left") }
    }
    guard connection.heldBytes <= 300 + 125 else { fatalError("holds too much") }
  }
  heard.output = output.bytes
  return heard
}

private func writeAgain(_ heard: Heard, _ role: WebSocketConnection.Role) {
  let other: WebSocketConnection.Role = role == .server ? .client : .server
  let writer = WebSocketConnection(other, limits: limits(), now: Moment(ns: 0), random: { 0x1122_3344 })
  var output = ByteWriter()
  for (content, message) in heard.messages {
    message.withUnsafeBytes { writer.send(content, $0, output: &output) }
  }
  guard hear([output.bytes], role).messages.elementsEqual(heard.messages, by: ==) else {
    fatalError("what was written is read as something else")
  }
}

private func shake(_ bytes: [UInt8]) {
  var client = ClientHandshake(host: "fuzz", path: "/", subprotocol: "xmpp", random: { 3 })
  bytes.withUnsafeBytes { chunk in
    var offset = 0
    _ = try? client.receive(chunk, &offset)
    guard offset <= chunk.count else { fatalError("read too far") }
  }
  let server = HTTPServerConnection(now: Moment(ns: 0))
  let request = bytes.withUnsafeBytes { server.receive($0, now: Moment(ns: 0), wall: WallTime(ms: 0)) }
  if let request { _ = ServerHandshake(subprotocols: ["xmpp"]).answer(request) }
}
