package import Bytes

/// The memory that all TLS sessions of one thread work in: plaintext on its way in, records on their way out.
///
/// A session holds none of its own between two calls.
package final class TLSScratch {
  /// Plaintext is handed out when less than a record's worth of room is left.
  static let recordBytesMax = 16 * 1024

  let plaintext: UnsafeMutableRawBufferPointer
  /// Records to be sent, of the session that was called last.
  ///
  /// Its caller empties it after every call.
  package let output = OutBuffer()

  /// - Parameter plaintextBytes: How much plaintext one call hands out at once; at least two records.
  package init(plaintextBytes: Int = 128 * 1024) {
    plaintext = .allocate(byteCount: max(2 * Self.recordBytesMax, plaintextBytes), alignment: 64)
  }

  deinit { plaintext.deallocate() }
}
