import Glibc

/// What the machine itself costs, so that figures of different machines can be compared as ratios.
enum Calibration {
  /// Processor time of writing 700 bytes to a TCP connection on loopback and reading them, in microseconds; nil
  /// when there is no loopback.
  static func loopbackMicroseconds(times: Int = 50_000) -> Double? {
    var pair: (CInt, CInt)?
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let connected = withUnsafeMutablePointer(to: &address) { pointer -> Bool in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard bind(listener, address, size) == 0, listen(listener, 1) == 0,
          getsockname(listener, address, &size) == 0
        else { return false }
        let near = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard connect(near, address, size) == 0 else { return false }
        pair = (near, accept(listener, nil, nil))
        return true
      }
    }
    guard connected, let (near, far) = pair else { return nil }
    defer {
      close(near)
      close(far)
    }
    var bytes = [UInt8](repeating: 1, count: 700)
    let begin = processorNs
    for _ in 0..<times {
      guard write(near, bytes, bytes.count) == bytes.count, read(far, &bytes, bytes.count) > 0 else {
        return nil
      }
    }
    return Double(processorNs - begin) / Double(times) / 1_000
  }

  private static var processorNs: Int64 {
    var spec = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spec)
    return Int64(spec.tv_sec) * 1_000_000_000 + Int64(spec.tv_nsec)
  }
}
