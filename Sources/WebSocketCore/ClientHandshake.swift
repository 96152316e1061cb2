/// Why a client's opening handshake came to nothing.
package enum HandshakeFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// The server answered with another status than 101.
  case refused(status: Int)
  /// No HTTP/1.1 answer, or one of more than 16 KiB.
  case malformed
  /// 101, but not for WebSocket, or with another key's answer: RFC 6455 §4.1.
  case notWebSocket
  /// The server chose an extension or a subprotocol that was not offered, or no subprotocol.
  case notOffered

  /// For people.
  package var description: String {
    switch self {
    case .refused(let status): "the server refused WebSocket with status \(status)"
    case .malformed: "the answer to the WebSocket handshake cannot be read"
    case .notWebSocket: "the server does not speak WebSocket there"
    case .notOffered: "the server chose a subprotocol or an extension that was not offered"
    }
  }
}

/// The client's side of the opening handshake: RFC 6455 §4.1.
package struct ClientHandshake: Sendable {
  private static var headBytesMax: Int { 16_384 }

  private let key: String
  private let subprotocol: String?
  private var head: [UInt8] = []

  /// What is to be sent.
  package let request: [UInt8]

  /// - Parameters:
  ///   - host: For the `Host` field, with the port unless it is the usual one.
  ///   - path: Printable ASCII, from its slash.
  ///   - random: A source fit for secrets.
  package init(host: String, path: String, subprotocol: String?, random: () -> UInt64) {
    key = HandshakeKey.make(random)
    self.subprotocol = subprotocol
    var text = "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    text += "Sec-WebSocket-Key: \(key)\r\nSec-WebSocket-Version: 13\r\n"
    if let subprotocol { text += "Sec-WebSocket-Protocol: \(subprotocol)\r\n" }
    request = Array((text + "\r\n").utf8)
  }

  /// Takes bytes of the answer.
  ///
  /// - Parameter offset: Moved past the answer's end, and not beyond.
  /// - Returns: Whether the connection is open.
  package mutating func receive(
    _ chunk: UnsafeRawBufferPointer, _ offset: inout Int
  ) throws(HandshakeFault) -> Bool {
    while offset < chunk.count {
      head.append(chunk[offset])
      offset += 1
      if head.last == 0x0A, head.suffix(4) == [0x0D, 0x0A, 0x0D, 0x0A] {
        try check()
        head = []
        return true
      }
      guard head.count < Self.headBytesMax else { throw .malformed }
    }
    return false
  }

  private func check() throws(HandshakeFault) {
    var lines = String(decoding: head, as: UTF8.self).split(
      separator: "\r\n", omittingEmptySubsequences: true)
    guard !lines.isEmpty else { throw .malformed }
    let status = lines.removeFirst().split(separator: " ", maxSplits: 2)
    guard status.count >= 2, status[0] == "HTTP/1.1", status[1].utf8.count == 3, let code = Int(status[1])
    else { throw .malformed }
    guard code == 101 else { throw .refused(status: code) }
    var fields: [String: [String]] = [:]
    for line in lines {
      guard let colon = line.firstIndex(of: ":") else { throw .malformed }
      let name = line[..<colon].lowercased()
      let value = line[line.index(after: colon)...]
      fields[name, default: []].append(String(value.drop { $0 == " " || $0 == "\t" }).trimmedAtEnd())
    }
    var isUpgraded = false
    for value in fields["connection"] ?? [] {
      for option in value.split(separator: ",") {
        if option.lowercased().filter({ $0 != " " }) == "upgrade" { isUpgraded = true }
      }
    }
    guard isUpgraded, fields["upgrade"]?.map({ $0.lowercased() }) == ["websocket"],
      fields["sec-websocket-accept"] == [HandshakeKey.accept(key)]
    else { throw .notWebSocket }
    guard fields["sec-websocket-extensions"] == nil,
      fields["sec-websocket-protocol"] ?? [] == (subprotocol.map { [$0] } ?? [])
    else { throw .notOffered }
  }
}

extension String {
  fileprivate func trimmedAtEnd() -> String {
    var text = self
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}
