import Bytes
import Connections
import EventLoops
import Foundation

/// XMPP with stream management (XEP-0198): an ack is the server's count of handled stanzas.
final class XMPPWire: ChannelWire {
  private enum Step { case mechanisms, success, features, bound, enabled, ready }

  private var step = Step.mechanisms
  /// Whether the header of the present stream has come.
  private var isInside = false
  /// Stanzas that came since stream management began.
  private var handled = 0
  private var counts = false
  private var pending: [Int] = []
  private var firstPending = 0
  private var ackedCount = 0
  private var output = ByteWriter(capacity: 2_048)
  private var owesRequest = false
  private var owesAck = false

  private static let header =
    "<?xml version='1.0'?><stream:stream to='localhost' version='1.0' xml:lang='en' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"

  private var user: String {
    switch role {
    case .sender(let number): "s\(number)"
    case .device(let number): "d\(number)"
    }
  }

  override func begin() { write(Self.header) }

  private func write(_ text: String) { channel?.send(Array(text.utf8)) }

  // MARK: In

  override func take(_ bytes: UnsafeRawBufferPointer) -> Int {
    var place = 0
    var used = 0
    var start = 0
    // What is not whole is scanned again when more has come: each scan begins between stanzas.
    var depth = isInside ? 1 : 0
    while place < bytes.count {
      guard let open = Self.find(0x3C, bytes, place), let end = Self.find(0x3E, bytes, open) else { break }
      let isEnd = bytes[open + 1] == 0x2F
      let isClosed = bytes[end - 1] == 0x2F
      place = end + 1
      if bytes[open + 1] == 0x3F {
        used = place
        continue
      }
      if depth == 1, !isEnd { start = open }
      if isEnd { depth -= 1 } else if !isClosed { depth += 1 }
      if depth <= 0 {
        over("the server ended the stream: \(String(decoding: bytes.suffix(300), as: UTF8.self))")
        return bytes.count
      }
      guard depth == 1 else { continue }
      used = place
      if isInside {
        stanza(UnsafeRawBufferPointer(rebasing: bytes[start..<place]))
        depth = isInside ? 1 : 0
      } else {
        isInside = true
      }
    }
    if owesAck {
      owesAck = false
      write("<a xmlns='urn:xmpp:sm:3' h='\(handled)'/>")
    }
    return used
  }

  private static func find(_ byte: UInt8, _ bytes: UnsafeRawBufferPointer, _ from: Int) -> Int? {
    guard from < bytes.count, let base = bytes.baseAddress,
      let found = memchr(base + from, Int32(byte), bytes.count - from)
    else { return nil }
    return UnsafeRawPointer(found) - base
  }

  private func stanza(_ bytes: UnsafeRawBufferPointer) {
    func starts(_ name: StaticString) -> Bool {
      name.withUTF8Buffer { name in bytes.count > name.count + 1 && bytes[1...].starts(with: name) }
    }
    if starts("message") {
      if counts { handled += 1 }
      if let number = Self.number(in: bytes) { delivered(number) }
    } else if starts("presence") || starts("iq") {
      if counts { handled += 1 }
      if step == .bound, starts("iq") {
        step = .enabled
        write("<enable xmlns='urn:xmpp:sm:3'/>")
      }
    } else if starts("r ") || starts("r/") {
      owesAck = true
    } else if starts("a ") {
      if let count = Self.attribute("h", bytes) { ackedUp(to: count) }
    } else if starts("enabled") {
      counts = true
      step = .ready
      if case .device = role { write("<presence/>") }
      ready()
    } else if starts("success") {
      step = .features
      isInside = false
      write(Self.header)
    } else if starts("stream:features") {
      if step == .mechanisms {
        let plain = Data("\0\(user)\0secret".utf8).base64EncodedString()
        step = .success
        write("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(plain)</auth>")
      } else {
        step = .bound
        write(
          "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>bench</resource></bind></iq>"
        )
      }
    } else {
      over("unexpected: \(String(decoding: bytes.prefix(300), as: UTF8.self))")
    }
  }

  private static func attribute(_ name: String, _ bytes: UnsafeRawBufferPointer) -> Int? {
    let text = String(decoding: bytes, as: UTF8.self)
    for quote in ["'", "\""] {
      guard let range = text.range(of: " \(name)=\(quote)") else { continue }
      return Int(text[range.upperBound...].prefix { $0.isNumber })
    }
    return nil
  }

  private func ackedUp(to count: Int) {
    while ackedCount < count, firstPending < pending.count {
      ackedCount += 1
      let number = pending[firstPending]
      firstPending += 1
      acked(number)
    }
    if firstPending > 4_096 {
      pending.removeFirst(firstPending)
      firstPending = 0
    }
    flush()
  }

  // MARK: Out

  override func publish(_ number: Int, to device: Int) {
    output.removeAll()
    output.append("<message type='chat' to='d")
    output.append(decimal: Int64(device))
    output.append("@localhost' id='m")
    output.append(decimal: Int64(number))
    output.append("'><body>#n")
    output.append(decimal: Int64(number))
    output.append(" ")
    output.append(Self.text)
    output.append("</body></message>")
    output.bytes.withUnsafeBytes { channel?.send($0) }
    pending.append(number)
    owesRequest = true
  }

  /// One request for an ack after a batch: as few as a good client would send.
  override func flush() {
    guard owesRequest else { return }
    owesRequest = false
    channel?.send("<r xmlns='urn:xmpp:sm:3'/>")
  }

  override func close() {
    channel?.send("</stream:stream>")
    leave()
  }
}
