import COpenSSL

/// The one owner of an OpenSSL object: frees it when the last reference goes.
final class OwnedPointer {
  let raw: OpaquePointer
  private let free: (OpaquePointer) -> Void

  /// Takes charge of `pointer`; nil means that `call` failed.
  init(_ pointer: OpaquePointer?, _ call: String, free: @escaping (OpaquePointer) -> Void) throws(CryptoFault)
  {
    guard let pointer else { throw Self.fault(call) }
    raw = pointer
    self.free = free
  }

  deinit { free(raw) }

  /// Turns OpenSSL's answer into an error; anything but 1 and above is a failure.
  static func check(_ answer: Int32, _ call: String) throws(CryptoFault) {
    guard answer > 0 else { throw fault(call) }
  }

  static func fault(_ call: String) -> CryptoFault {
    let code = ERR_get_error()
    var text = [CChar](repeating: 0, count: 256)
    ERR_error_string_n(code, &text, text.count)
    ERR_clear_error()
    let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return .library(
      call: call, reason: code == 0 ? "no reason given" : String(decoding: bytes, as: UTF8.self))
  }
}
