import CUV
import Glibc

/// The other end of a connection: an IP address and a port.
///
/// An IPv4 address mapped into IPv6 is kept as IPv4.
package struct PeerAddress: Hashable, Sendable, CustomStringConvertible {
  private let high: UInt64
  private let low: UInt64
  /// Whether it is an IPv6 address.
  package let isIPv6: Bool
  package let port: UInt16

  init?(_ storage: sockaddr_storage) {
    var storage = storage
    switch CInt(storage.ss_family) {
    case AF_INET:
      self = withUnsafeBytes(of: &storage) { bytes in
        let address = bytes.loadUnaligned(as: sockaddr_in.self)
        return PeerAddress(
          high: 0, low: UInt64(UInt32(bigEndian: address.sin_addr.s_addr)), isIPv6: false,
          port: UInt16(bigEndian: address.sin_port))
      }
    case AF_INET6:
      self = withUnsafeBytes(of: &storage) { bytes in
        let port = bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)
        let high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        let low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
        let isMapped = high == 0 && low >> 32 == 0xFFFF
        return PeerAddress(
          high: high, low: isMapped ? low & 0xFFFF_FFFF : low, isIPv6: !isMapped,
          port: UInt16(bigEndian: port))
      }
    default: return nil
    }
  }

  private init(high: UInt64, low: UInt64, isIPv6: Bool, port: UInt16) {
    self.high = high
    self.low = low
    self.isIPv6 = isIPv6
    self.port = port
  }

  /// The address alone, as text.
  package var host: String {
    var bytes = [UInt8](repeating: 0, count: 16)
    var text = [CChar](repeating: 0, count: 64)
    let width = isIPv6 ? 16 : 4
    for index in 0..<width {
      let fromEnd = width - 1 - index
      let word = fromEnd >= 8 ? high : low
      bytes[index] = UInt8(truncatingIfNeeded: word >> UInt64(8 * (fromEnd % 8)))
    }
    guard inet_ntop(isIPv6 ? AF_INET6 : AF_INET, bytes, &text, socklen_t(text.count)) != nil else {
      return "?"
    }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Whether the peer is this machine.
  package var isLoopback: Bool {
    isIPv6 ? high == 0 && low == 1 : low >> 24 == 127
  }

  /// `127.0.0.1:5235` or `[::1]:5235`.
  package var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// Numeric addresses without a resolver.
func numericAddress(_ host: String, port: UInt16) -> sockaddr_storage? {
  var storage = sockaddr_storage()
  let found = withUnsafeMutableBytes(of: &storage) { bytes -> Bool in
    guard let base = bytes.baseAddress else { return false }
    if uv_ip4_addr(host, CInt(port), base.assumingMemoryBound(to: sockaddr_in.self)) == 0 { return true }
    return uv_ip6_addr(host, CInt(port), base.assumingMemoryBound(to: sockaddr_in6.self)) == 0
  }
  return found ? storage : nil
}

/// Whether it is 127.0.0.1.
func isLoopback(_ storage: sockaddr_storage) -> Bool {
  guard CInt(storage.ss_family) == AF_INET else { return false }
  return withUnsafeBytes(of: storage) {
    $0.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr == UInt32(0x7F00_0001).bigEndian
  }
}

/// Calls `body` with the address as the C interfaces take it.
func withSocketAddress<Result>(
  _ storage: sockaddr_storage, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result {
  withUnsafePointer(to: storage) { pointer in
    let length =
      CInt(storage.ss_family) == AF_INET6
      ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    return pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
  }
}
