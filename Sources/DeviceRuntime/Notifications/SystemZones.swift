import Glibc
import Synchronization

/// Zones of the system's database, read once and kept.
package final class SystemZones: ZoneSource {
  private let folder: String
  private let kept = Mutex<[String: ZoneRules]>([:])

  package init(folder: String = "/usr/share/zoneinfo") { self.folder = folder }

  /// The device's own zone is that of the variable `TZ`, else of `/etc/localtime`, else UTC.
  package func rules(_ name: String?) -> ZoneRules? {
    guard let name else {
      if let variable = getenv("TZ").map({ String(cString: $0) }) {
        let name = variable.hasPrefix(":") ? String(variable.dropFirst()) : variable
        if name.hasPrefix("/") { return Self.read(name) ?? .utc }
        return name.isEmpty ? .utc : rules(name) ?? .utc
      }
      // Not kept: the user may travel.
      return Self.read("/etc/localtime") ?? .utc
    }
    if let found = kept.withLock({ $0[name] }) { return found }
    let isPlain = name.utf8.allSatisfy {
      (48...57).contains($0) || (65...90).contains($0 & 0xDF) || [0x2B, 0x2D, 0x2F, 0x5F].contains($0)
    }
    guard isPlain, !name.hasPrefix("/"), let found = Self.read(folder + "/" + name) else { return nil }
    kept.withLock { $0[name] = found }
    return found
  }

  private static func read(_ path: String) -> ZoneRules? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    // The largest zone files have a few kilobytes.
    var bytes = [UInt8](repeating: 0, count: 1 << 17)
    var count = 0
    while count < bytes.count {
      let more = bytes.withUnsafeMutableBytes { buffer in
        Glibc.read(file, buffer.baseAddress.map { $0 + count }, buffer.count - count)
      }
      guard more > 0 else { break }
      count += more
    }
    return try? ZoneRules(tzif: Array(bytes.prefix(count)))
  }
}
