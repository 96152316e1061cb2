import Bytes
import Connections
import EventLoops
import Foundation

/// MQTT 3.1.1 with quality of service 1 on both sides: an ack is PUBACK.
final class MQTTWire: ChannelWire {
  private var numbers = [Int](repeating: -1, count: 65_536)
  private var lastID: UInt16 = 0
  private var output = ByteWriter(capacity: 2_048)
  /// Whether the server wants names and passwords.
  var logsIn = false

  override func begin() {
    var name: String
    var isClean: Bool
    switch role {
    case .sender(let number): (name, isClean) = ("s\(number)", true)
    case .device(let number): (name, isClean) = ("d\(number)", false)
    }
    var body: [UInt8] = Self.text("MQTT") + [4, (isClean ? 2 : 0) | (logsIn ? 0xC0 : 0), 0, 0]
    body += Self.text(name)
    if logsIn { body += Self.text("\(name)@localhost") + Self.text("secret") }
    name = ""
    isClean = true
    send(0x10, body)
  }

  private static func text(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    return [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes
  }

  private func send(_ type: UInt8, _ body: [UInt8]) {
    var bytes: [UInt8] = [type]
    var length = body.count
    repeat {
      let digit = UInt8(length & 127)
      length >>= 7
      bytes.append(length > 0 ? digit | 128 : digit)
    } while length > 0
    channel?.send(bytes + body)
  }

  override func take(_ bytes: UnsafeRawBufferPointer) -> Int {
    var used = 0
    while used + 2 <= bytes.count {
      var length = 0
      var shift = 0
      var place = used + 1
      var isWhole = false
      while place < bytes.count, shift <= 21 {
        let digit = bytes[place]
        place += 1
        length |= Int(digit & 127) << shift
        shift += 7
        if digit & 128 == 0 {
          isWhole = true
          break
        }
      }
      guard isWhole, place + length <= bytes.count else { break }
      packet(bytes[used], UnsafeRawBufferPointer(rebasing: bytes[place..<(place + length)]))
      used = place + length
    }
    return used
  }

  private func packet(_ first: UInt8, _ body: UnsafeRawBufferPointer) {
    switch first >> 4 {
    case 2:
      guard body.count >= 2, body[1] == 0 else { return over("the server refused the connection") }
      guard case .device(let number) = role else { return ready() }
      send(0x82, [0, 1] + Self.text("d/\(number)") + [1])
    case 3:
      guard body.count > 4 else { return }
      let topic = Int(body[0]) << 8 | Int(body[1])
      if first & 6 != 0, body.count >= topic + 4 {
        channel?.send([0x40, 2, body[topic + 2], body[topic + 3]])
      }
      if let number = Self.number(in: UnsafeRawBufferPointer(rebasing: body[min(body.count, topic + 2)...])) {
        delivered(number)
      }
    case 4:
      guard body.count >= 2 else { return }
      let id = Int(body[0]) << 8 | Int(body[1])
      let number = numbers[id]
      numbers[id] = -1
      if number >= 0 { acked(number) }
    case 9: ready()
    default: break
    }
  }

  override func publish(_ number: Int, to device: Int) {
    lastID = lastID == 65_535 ? 1 : lastID + 1
    numbers[Int(lastID)] = number
    let body =
      Self.text("d/\(device)") + [UInt8(lastID >> 8), UInt8(lastID & 255)]
      + Array("#n\(number) \(Self.text)".utf8)
    send(0x32, body)
  }

  override func close() {
    channel?.send([0xE0, 0] as [UInt8])
    leave()
  }
}
