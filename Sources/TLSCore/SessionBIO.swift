import COpenSSL

/// OpenSSL's view of an engine's bytes: reads come straight from what the engine was lent, writes go to the output that it
/// was lent.
///
/// Neither keeps a buffer.
enum SessionBIO {
  // Sendable by argument: made once, changed never.
  nonisolated(unsafe) private static let method: OpaquePointer? = makeMethod()

  /// A BIO for `engine`, owned by whoever takes it; nil when memory is out.
  static func make(for engine: OpenSSLEngine) -> OpaquePointer? {
    guard let method, let bio = BIO_new(method) else { return nil }
    BIO_set_data(bio, Unmanaged.passUnretained(engine).toOpaque())
    BIO_set_init(bio, 1)
    return bio
  }

  private static func makeMethod() -> OpaquePointer? {
    let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
    guard let method = BIO_meth_new(type, "weir") else { return nil }
    BIO_meth_set_read(method, readBytes)
    BIO_meth_set_write(method, writeBytes)
    BIO_meth_set_ctrl(method, control)
    return method
  }
}

private func readBytes(_ bio: OpaquePointer?, _ out: UnsafeMutablePointer<CChar>?, _ count: CInt) -> CInt {
  guard let bio, let out, let data = BIO_get_data(bio) else { return -1 }
  shim_BIO_clear_retry_flags(bio)
  let taken = Unmanaged<OpenSSLEngine>.fromOpaque(data)._withUnsafeGuaranteedRef {
    $0.takeInput(UnsafeMutableRawBufferPointer(start: out, count: Int(max(0, count))))
  }
  if taken > 0 { return CInt(truncatingIfNeeded: taken) }
  shim_BIO_set_retry_read(bio)
  return -1
}

private func writeBytes(_ bio: OpaquePointer?, _ bytes: UnsafePointer<CChar>?, _ count: CInt) -> CInt {
  guard let bio, let bytes, count > 0, let data = BIO_get_data(bio) else { return -1 }
  shim_BIO_clear_retry_flags(bio)
  Unmanaged<OpenSSLEngine>.fromOpaque(data)._withUnsafeGuaranteedRef {
    $0.addOutput(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
  }
  return count
}

private func control(
  _ bio: OpaquePointer?, _ command: CInt, _ number: CLong, _ pointer: UnsafeMutableRawPointer?
) -> CLong {
  command == BIO_CTRL_FLUSH ? 1 : 0
}
