package import Bytes

/// What a frame is: RFC 6455 §5.2.
package enum Opcode: UInt8, Sendable, Hashable, CaseIterable {
  case continuation = 0
  case text = 1
  case binary = 2
  case close = 8
  case ping = 9
  case pong = 10

  var isControl: Bool { rawValue & 8 != 0 }
}

/// Frames on their way out.
package enum WebSocketFrame {
  /// Bytes of a header; 14 at most.
  package static func headerBytes(payload count: Int, isMasked: Bool) -> Int {
    (count < 126 ? 2 : count <= 0xFFFF ? 4 : 10) + (isMasked ? 4 : 0)
  }

  /// Writes a header.
  ///
  /// - Parameters:
  ///   - mask: The key that the payload is masked with, first byte on the wire lowest; nil on a server.
  ///   - target: Has room for ``headerBytes(payload:isMasked:)``.
  /// - Returns: Bytes written.
  package static func writeHeader(
    _ opcode: Opcode, isFinal: Bool = true, payload count: Int, mask: UInt32?,
    to target: UnsafeMutableRawBufferPointer
  ) -> Int {
    let size = headerBytes(payload: count, isMasked: mask != nil)
    precondition(target.count >= size, "the caller makes room for the header")
    let maskBit: UInt8 = mask == nil ? 0 : 0x80
    target[0] = (isFinal ? 0x80 : 0) | opcode.rawValue
    var at = 2
    if count < 126 {
      target[1] = maskBit | UInt8(truncatingIfNeeded: count)
    } else if count <= 0xFFFF {
      target[1] = maskBit | 126
      target.storeBytes(of: UInt16(truncatingIfNeeded: count).bigEndian, toByteOffset: 2, as: UInt16.self)
      at = 4
    } else {
      target[1] = maskBit | 127
      target.storeBytes(of: UInt64(count).bigEndian, toByteOffset: 2, as: UInt64.self)
      at = 10
    }
    if let mask {
      target.storeBytes(of: mask.littleEndian, toByteOffset: at, as: UInt32.self)
      at += 4
    }
    return at
  }

  /// Writes a whole frame.
  ///
  /// - Parameters:
  ///   - mask: A client's new key, unknown to whoever chose the payload (§10.3); nil on a server.
  ///   - target: Has room for the header and the payload.
  /// - Returns: Bytes written.
  package static func write(
    _ opcode: Opcode, isFinal: Bool = true, payload: UnsafeRawBufferPointer, mask: UInt32?,
    to target: UnsafeMutableRawBufferPointer
  ) -> Int {
    let start = writeHeader(opcode, isFinal: isFinal, payload: payload.count, mask: mask, to: target)
    precondition(target.count - start >= payload.count, "the caller makes room for the payload")
    if let base = target.baseAddress {
      Masking.copy(payload, key: mask ?? 0, offset: 0, to: base + start)
    }
    return start + payload.count
  }

  /// Appends a whole frame.
  package static func append(
    _ opcode: Opcode, isFinal: Bool = true, payload: UnsafeRawBufferPointer, mask: UInt32?,
    to output: inout ByteWriter
  ) {
    withUnsafeTemporaryAllocation(byteCount: 14, alignment: 8) { header in
      let count = writeHeader(opcode, isFinal: isFinal, payload: payload.count, mask: mask, to: header)
      output.append(UnsafeRawBufferPointer(rebasing: header[..<count]))
    }
    guard let mask else {
      output.append(payload)
      return
    }
    withUnsafeTemporaryAllocation(byteCount: min(4096, payload.count), alignment: 8) { piece in
      guard let base = piece.baseAddress else { return }
      var offset = 0
      while offset < payload.count {
        let count = min(piece.count, payload.count - offset)
        let part = UnsafeRawBufferPointer(rebasing: payload[offset..<offset + count])
        Masking.copy(part, key: mask, offset: offset, to: base)
        output.append(UnsafeRawBufferPointer(start: base, count: count))
        offset += count
      }
    }
  }
}
