// modules: Bytes Seams HTTPCore
import Bytes
import HTTPCore
import Seams

/// The input is the body of a request that says it is gzip.
///
/// Either it is refused, or what comes out is within the limit and the field is gone.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzGzipBody(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let now = Moment(ns: 0)
  let wall = WallTime(ms: 0)
  var limits = HTTPLimits()
  limits.bodyBytesMax = 8_192
  let connection = HTTPServerConnection(limits: limits, now: now)
  let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: \(count)\r\n\r\n"
  var bytes = Array(head.utf8)
  bytes.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
  let request = bytes.withUnsafeBytes { connection.receive($0, now: now, wall: wall) }
  guard let request else {
    guard connection.isDone else { fatalError("neither refused nor handed out") }
    return 0
  }
  guard request.body.count <= limits.bodyBytesMax, !request.fields.has("content-encoding") else {
    fatalError("\(request.body.count) bytes")
  }
  return 0
}
