/// Counts the records of TLS in bytes that come in any pieces, by their headers alone (RFC 8446 §5.1).
struct RecordTracker {
  /// Records that have come whole.
  private(set) var count: UInt64 = 0
  /// Bytes of the present record's header that have come, and the length they say.
  private var headerBytes = 0
  private var length = 0
  /// Bytes of its body that are still to come.
  private var bodyLeft = 0

  /// Whether the last byte that came was the last of a record.
  var isBetweenRecords: Bool { headerBytes == 0 }

  mutating func feed(_ bytes: UnsafeRawBufferPointer) {
    var place = 0
    while place < bytes.count {
      if headerBytes < RecordCipher.headerBytes {
        length = (length << 8 | Int(bytes[place])) & 0xFFFF
        headerBytes += 1
        place += 1
        bodyLeft = length
      } else {
        let some = min(bodyLeft, bytes.count - place)
        bodyLeft -= some
        place += some
      }
      guard headerBytes == RecordCipher.headerBytes, bodyLeft == 0 else { continue }
      count += 1
      headerBytes = 0
    }
  }
}
