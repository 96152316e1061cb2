import Bytes
import Connections
import EventLoops
import Foundation

/// The lines of the reference switch (`Benchmarks/Switch/switch.c`).
final class SwitchWire: ChannelWire {
  private var output = ByteWriter(capacity: 2_048)

  override func begin() {
    switch role {
    case .sender(let number): channel?.send(Array("S \(number)\n".utf8))
    case .device(let number): channel?.send(Array("D \(number)\n".utf8))
    }
  }

  override func take(_ bytes: UnsafeRawBufferPointer) -> Int {
    var used = 0
    while let base = bytes.baseAddress, used < bytes.count,
      let end = memchr(base + used, 0x0A, bytes.count - used)
    {
      let count = UnsafeRawPointer(end) - base - used
      line(UnsafeRawBufferPointer(rebasing: bytes[used..<(used + count)]))
      used += count + 1
    }
    return used
  }

  private func line(_ text: UnsafeRawBufferPointer) {
    switch text.first {
    case UInt8(ascii: "K"): ready()
    case UInt8(ascii: "A"): acked(Self.digits(text.dropFirst(2)))
    case UInt8(ascii: "M"):
      let id = text.dropFirst(2).prefix { $0 != 0x20 }
      output.removeAll()
      output.append("A ")
      output.append(UnsafeRawBufferPointer(rebasing: id))
      output.append("\n")
      output.bytes.withUnsafeBytes { channel?.send($0) }
      delivered(Self.digits(id))
    default: break
    }
  }

  private static func digits(_ text: Slice<UnsafeRawBufferPointer>) -> Int {
    text.prefix { $0 >= 0x30 && $0 <= 0x39 }.reduce(0) { $0 &* 10 &+ Int($1) &- 0x30 }
  }

  private static let payload = Array(PeerWire.text.utf8)

  override func publish(_ number: Int, to device: Int) {
    output.removeAll()
    output.append("M ")
    output.append(decimal: Int64(number))
    output.append(" ")
    output.append(decimal: Int64(device))
    output.append(" ")
    output.append(Self.payload)
    output.append("\n")
    output.bytes.withUnsafeBytes { channel?.send($0) }
  }

  override func close() { leave() }
}
