import Bytes
import CZ
import HTTPCore
import Seams
import Testing

struct ContentCodingTests {
  private var small: HTTPLimits {
    var limits = HTTPLimits()
    limits.bodyBytesMax = 1_000
    return limits
  }

  private func post(_ body: [UInt8], _ coding: String, _ limits: HTTPLimits) -> (one: Heard, two: HTTP2Peer?)
  {
    let head = "POST / HTTP/1.1\r\nHost: h\r\n\(coding)Content-Length: \(body.count)\r\n\r\n"
    let one = talk([Array(head.utf8) + body], limits: limits)
    let peer = try? HTTP2Peer(limits: limits)
    let fields = coding.split(separator: "\r\n").map { line in
      let parts = line.split(separator: ":")
      return (parts[0].lowercased(), String(parts[1].dropFirst()))
    }
    peer?.send(Frame.post(1, fields), Frame(kind: .data, flags: Frame.endStream, stream: 1, payload: body))
    return (one, peer)
  }

  /// The status of a refusal by either version, or 200 when both handed out the same request.
  private func outcome(_ body: [UInt8], _ coding: String, as plain: [UInt8] = []) throws -> Int {
    let (one, two) = post(body, coding, small)
    let peer = try #require(two)
    guard let request = one.requests.first else {
      #expect(peer.arrivals.isEmpty)
      let status = try #require(one.statuses.first)
      #expect(try peer.heads(try peer.frames()).map(\.status) == [status])
      return status
    }
    #expect(request.body == plain)
    #expect(request.fields["content-encoding"] == nil)
    #expect(peer.arrivals.first?.request.body == plain)
    return 200
  }

  @Test func aGzipBodyIsDecodedAndOtherCodingsAreRefused() throws {
    let plain = Array("{\"to\":\"é🌍\"}".utf8)
    let packed = try gzip(plain)
    #expect(try outcome(packed, "Content-Encoding: gzip\r\n", as: plain) == 200)
    #expect(try outcome(packed, "Content-Encoding: GZip\r\n", as: plain) == 200)
    #expect(try outcome(packed, "Content-Encoding: x-gzip\r\n", as: plain) == 200)
    #expect(try outcome(plain, "Content-Encoding: identity\r\n", as: plain) == 200)
    // Two members are the two texts (RFC 1952 §2.2).
    #expect(try outcome(packed + packed, "Content-Encoding: gzip\r\n", as: plain + plain) == 200)
    for coding in ["deflate", "br", "zstd", "gzip, gzip", "gzip\r\nContent-Encoding: gzip"] {
      #expect(try outcome(packed, "Content-Encoding: \(coding)\r\n") == 415)
    }
    let heard = post(packed, "Content-Encoding: br\r\n", small).one
    #expect(heard.output.contains("accept-encoding: gzip\r\n"))
  }

  @Test func aBrokenGzipIsRefused() throws {
    let packed = try gzip(Array("hello".utf8))
    for broken in [
      [], Array("hello".utf8), Array(packed.dropLast()), Array(packed.dropLast(8)), packed + [0],
      packed + packed.dropLast(), Array(packed.prefix(10)),
    ] {
      #expect(try outcome(broken, "Content-Encoding: gzip\r\n") == 400)
    }
    var wrongSum = packed
    wrongSum[wrongSum.count - 8] ^= 1
    #expect(try outcome(wrongSum, "Content-Encoding: gzip\r\n") == 400)
  }

  @Test func theDecodedBodyHasTheLimitOfBodies() throws {
    let fitting = [UInt8](repeating: 0, count: small.bodyBytesMax)
    #expect(try outcome(try gzip(fitting), "Content-Encoding: gzip\r\n", as: fitting) == 200)
    #expect(try outcome(try gzip(fitting + [0]), "Content-Encoding: gzip\r\n") == 413)
    // A gigabyte in a megabyte would be the same: it is not decoded further.
    let bomb = try gzip([UInt8](repeating: 0, count: 500_000))
    #expect(bomb.count < small.bodyBytesMax)
    #expect(try outcome(bomb, "Content-Encoding: gzip\r\n") == 413)
    // Many members that fit one by one.
    let member = try gzip([UInt8](repeating: 0, count: 400))
    #expect(try outcome(member + member + member, "Content-Encoding: gzip\r\n") == 413)
  }
}

/// As a client does it.
func gzip(_ plain: [UInt8]) throws -> [UInt8] {
  var stream = z_stream()
  try #require(shim_deflateInit2(&stream, 9, 16 + 15) == Z_OK)
  defer { deflateEnd(&stream) }
  var input = plain
  var output = [UInt8](repeating: 0, count: plain.count + 100)
  let count = input.withUnsafeMutableBufferPointer { input in
    output.withUnsafeMutableBufferPointer { output in
      stream.next_in = input.baseAddress
      stream.avail_in = UInt32(input.count)
      stream.next_out = output.baseAddress
      stream.avail_out = UInt32(output.count)
      return deflate(&stream, Z_FINISH) == Z_STREAM_END ? output.count - Int(stream.avail_out) : -1
    }
  }
  try #require(count >= 0)
  return Array(output.prefix(count))
}
