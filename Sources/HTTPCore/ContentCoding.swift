import CZ

/// Undoes the content coding of a request body: gzip, or none (RFC 9110 §8.4).
enum ContentCoding {
  /// Decodes the body in place and drops the field that named the coding.
  ///
  /// - Parameter bytesMax: Of the decoded body. Never more than that is decoded, however small the input.
  /// - Returns: Why the body cannot be decoded; nil if it was, or had no coding.
  static func decode(_ fields: inout HTTPFields, _ body: inout [UInt8], bytesMax: Int) -> HTTPFault? {
    let count = fields.count(of: "content-encoding")
    guard count > 0 else { return nil }
    guard count == 1, let name = fields["content-encoding"]?.lowercased() else { return .codingUnknown }
    switch name {
    case "identity": break
    case "gzip", "x-gzip":
      switch gunzip(body, bytesMax: bytesMax) {
      case .success(let plain): body = plain
      case .failure(let fault): return fault
      }
    default: return .codingUnknown
    }
    fields.removeAll("content-encoding")
    return nil
  }

  /// Decodes one or more gzip members (RFC 1952 §2.2), and nothing behind them.
  static func gunzip(_ input: [UInt8], bytesMax: Int) -> Result<[UInt8], HTTPFault> {
    var stream = z_stream()
    // 16 asks for gzip alone; 15 is the largest window a gzip may have.
    guard shim_inflateInit2(&stream, 16 + 15) == Z_OK else { return .failure(.malformed) }
    defer { inflateEnd(&stream) }
    var output: [UInt8] = []
    var fault: HTTPFault?
    input.withUnsafeBufferPointer { input in
      // proof: zlib only reads from its input, though its type says otherwise.
      stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
      stream.avail_in = UInt32(clamping: input.count)
      fault = inflateAll(&stream, into: &output, bytesMax: bytesMax)
    }
    if let fault { return .failure(fault) }
    return .success(output)
  }

  private static func inflateAll(
    _ stream: inout z_stream, into output: inout [UInt8], bytesMax: Int
  ) -> HTTPFault? {
    let step = 16 * 1024
    while true {
      // One byte more than allowed tells a body that is too large from one that just fits.
      let room = min(step, bytesMax + 1 - output.count)
      var code: CInt = Z_OK
      let piece = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
        stream.next_out = buffer.baseAddress
        stream.avail_out = UInt32(clamping: room)
        code = inflate(&stream, Z_NO_FLUSH)
        count = room - Int(stream.avail_out)
      }
      output.append(contentsOf: piece)
      if output.count > bytesMax { return .bodyTooLarge }
      switch code {
      case Z_STREAM_END:
        if stream.avail_in == 0 { return nil }
        guard inflateReset(&stream) == Z_OK else { return .malformed }
      case Z_OK where !piece.isEmpty || stream.avail_in > 0: continue
      default: return .malformed
      }
    }
  }
}
