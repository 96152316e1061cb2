import Bytes
import CNghttp2

/// Hands the head and body of an answer to nghttp2.
enum HTTP2Fields {
  /// Answers an extended CONNECT with 200: from here on the stream's body goes through the tunnel.
  ///
  /// - Returns: false when nghttp2 did not take it.
  static func open(
    _ response: HTTPResponse, on stream: HTTP2Stream, date: [UInt8], session: OpaquePointer
  ) -> Bool {
    with(response, date, contentLength: nil) { list, count in
      var provider = nghttp2_data_provider()
      provider.source.ptr = Unmanaged.passUnretained(stream).toOpaque()
      provider.read_callback = readTunnel
      return nghttp2_submit_response(session, stream.number, list, count, &provider) == 0
    }
  }

  /// - Returns: false when nghttp2 did not take it.
  static func submit(
    _ response: HTTPResponse, on stream: HTTP2Stream, date: [UInt8], session: OpaquePointer, isHead: Bool
  ) -> Bool {
    let hasBody = response.status >= 200 && response.status != 204 && response.status != 304
    stream.body = hasBody && !isHead ? response.body : []
    stream.bodySent = 0
    return with(response, date, contentLength: hasBody ? response.body.count : nil) { list, count in
      guard !stream.body.isEmpty else {
        return nghttp2_submit_response(session, stream.number, list, count, nil) == 0
      }
      var provider = nghttp2_data_provider()
      provider.source.ptr = Unmanaged.passUnretained(stream).toOpaque()
      provider.read_callback = readBody
      return nghttp2_submit_response(session, stream.number, list, count, &provider) == 0
    }
  }

  private static func with(
    _ response: HTTPResponse, _ date: [UInt8], contentLength: Int?,
    _ submit: (UnsafePointer<nghttp2_nv>?, Int) -> Bool
  ) -> Bool {
    var numbers = ByteWriter(capacity: 24)
    numbers.append(decimal: Int64(min(max(response.status, 200), 599)))
    if let contentLength { numbers.append(decimal: Int64(contentLength)) }
    let fields = response.fields.safe
    return numbers.bytes.withUnsafeBytes { numbers in
      date.withUnsafeBytes { date in
        withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: fields.count + 3) { list in
          var count = 0
          func add(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ flag: nghttp2_nv_flag) {
            list.initializeElement(at: count, to: pair(name, value, flag))
            count += 1
          }
          func add(_ name: StaticString, _ value: UnsafeRawBufferPointer) {
            add(
              UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), value,
              NGHTTP2_NV_FLAG_NO_COPY_NAME)
          }
          add(":status", UnsafeRawBufferPointer(rebasing: numbers[..<3]))
          add("date", date)
          fields.forEach { name, value in
            if !isConnectionSpecific(name) { add(name, value, NGHTTP2_NV_FLAG_NONE) }
          }
          if contentLength != nil {
            add("content-length", UnsafeRawBufferPointer(rebasing: numbers[3...]))
          }
          return submit(list.baseAddress.map { UnsafePointer($0) }, count)
        }
      }
    }
  }

  static func withContinue(_ body: (UnsafeBufferPointer<nghttp2_nv>) -> Void) {
    let name: StaticString = ":status"
    let value: StaticString = "100"
    withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: 1) { list in
      list.initializeElement(
        at: 0,
        to: pair(
          UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount),
          UnsafeRawBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount),
          NGHTTP2_NV_FLAG_NONE))
      body(UnsafeBufferPointer(list))
    }
  }

  // proof: nghttp2 only reads through these pointers, though their type says otherwise.
  private static func pair(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ flag: nghttp2_nv_flag
  ) -> nghttp2_nv {
    nghttp2_nv(
      name: UnsafeMutablePointer(mutating: name.baseAddress?.assumingMemoryBound(to: UInt8.self)),
      value: UnsafeMutablePointer(mutating: value.baseAddress?.assumingMemoryBound(to: UInt8.self)),
      namelen: name.count, valuelen: value.count, flags: UInt8(flag.rawValue))
  }

  /// RFC 9113 §8.2.2.
  private static func isConnectionSpecific(_ name: UnsafeRawBufferPointer) -> Bool {
    switch name.count {
    case 7: HTTPFields.areEqual(name, "upgrade")
    case 10: HTTPFields.areEqual(name, "connection") || HTTPFields.areEqual(name, "keep-alive")
    case 16: HTTPFields.areEqual(name, "proxy-connection")
    case 17: HTTPFields.areEqual(name, "transfer-encoding")
    default: false
    }
  }
}

private func readBody(
  _ session: OpaquePointer?, _ number: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ room: Int,
  _ flags: UnsafeMutablePointer<UInt32>?, _ source: UnsafeMutablePointer<nghttp2_data_source>?,
  _ user: UnsafeMutableRawPointer?
) -> Int {
  guard let pointer = source?.pointee.ptr, let buffer, let flags else {
    return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
  }
  // proof: the connection keeps a stream until nghttp2 has closed it.
  return Unmanaged<HTTP2Stream>.fromOpaque(pointer)._withUnsafeGuaranteedRef { stream in
    let count = min(room, stream.body.count - stream.bodySent)
    stream.body.withUnsafeBufferPointer { body in
      if count > 0, let base = body.baseAddress { buffer.update(from: base + stream.bodySent, count: count) }
    }
    stream.bodySent += count
    if stream.bodySent == stream.body.count { flags.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue) }
    return count
  }
}

private func readTunnel(
  _ session: OpaquePointer?, _ number: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ room: Int,
  _ flags: UnsafeMutablePointer<UInt32>?, _ source: UnsafeMutablePointer<nghttp2_data_source>?,
  _ user: UnsafeMutableRawPointer?
) -> Int {
  guard let pointer = source?.pointee.ptr, let buffer, let flags else {
    return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
  }
  // proof: the connection keeps a stream until nghttp2 has closed it.
  return Unmanaged<HTTP2Stream>.fromOpaque(pointer)._withUnsafeGuaranteedRef { stream in
    let count = stream.takeBody(UnsafeMutableRawBufferPointer(start: buffer, count: room))
    if stream.body.isEmpty, stream.isFinishing {
      flags.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
    } else if count == 0 {
      return Int(NGHTTP2_ERR_DEFERRED.rawValue)
    }
    return count
  }
}
