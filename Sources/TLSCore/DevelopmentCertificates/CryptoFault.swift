/// What went wrong while making keys and certificates or keeping them on disk.
package enum CryptoFault: Error, Equatable, Sendable, CustomStringConvertible {
  /// OpenSSL refused; `reason` is its own text and holds no secret.
  case library(call: String, reason: String)
  /// A name that is neither a host name nor an IP address.
  case badName(String)
  /// `errno` of a file call.
  case file(path: String, call: String, errno: Int32)

  package var description: String {
    switch self {
    case .library(let call, let reason): "OpenSSL refused \(call): \(reason)"
    case .badName(let name): "not a host name or IP address: \(name.debugDescription)"
    case .file(let path, let call, let errno): "cannot \(call) \(path) (errno \(errno))"
    }
  }
}
