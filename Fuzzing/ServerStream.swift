// modules: Bytes Seams XMLCore XMPPCore
import Bytes
import Seams
import XMLCore
import XMPPCore

/// A whole connection: bytes and virtual time into the server's machine.
///
/// An input is a run of bytes cut into steps by 0xFF: the byte after it is how many seconds pass. Holds that
/// feeding a step whole or byte by byte gives the same output, that the end comes once, and that nothing is
/// written after it. Bit 0 of the first byte logs in and binds before.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzServerStream(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  guard let data, size > 0 else { return 0 }
  let input = Array(UnsafeBufferPointer(start: data, count: size))
  let whole = Run()
  let single = Run()
  if input[0] & 1 == 1 {
    whole.feed(prelude)
    single.feed(prelude)
  }
  var start = 1
  while start < input.count {
    let end = input[start...].firstIndex(of: 0xFF) ?? input.count
    whole.feed(Array(input[start..<end]))
    for byte in input[start..<end] { single.feed([byte]) }
    if end + 1 < input.count {
      whole.advance(.seconds(Int(input[end + 1])))
      single.advance(.seconds(Int(input[end + 1])))
    }
    start = end + 2
  }
  guard whole.output.bytes == single.output.bytes, whole.ends == single.ends else {
    fatalError("a cut changed the conversation")
  }
  guard whole.ends <= 1, (whole.ends == 1) == (whole.stream.state == .ended) else {
    fatalError("the end did not come once")
  }
  return 0
}

private let tag =
  "<stream:stream to='a' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
private let prelude = Array(
  (tag + "<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>ADEAaw==</auth>" + tag
    + "<iq type='set'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>").utf8)

private final class Run {
  let stream: ServerStream
  var output = ByteWriter()
  var ends = 0
  private var scratch: [UInt8] = []
  private var now = Moment(ns: 0)

  init() {
    stream = ServerStream(now: now) { 0x1234_5678_9ABC_DEF0 }
  }

  func feed(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { chunk in
      var offset = 0
      while true {
        if let event = stream.next(chunk, &offset, scratch: &scratch, output: &output, now: now) {
          take(event)
        } else if offset == chunk.count {
          break
        }
      }
    }
  }

  func advance(_ pause: Duration) {
    now = now + pause
    if let event = stream.deadlineReached(now: now, output: &output) { take(event) }
  }

  private func take(_ event: ServerEvent) {
    switch event {
    case .authenticate(let credentials):
      if credentials.password == "k" {
        stream.authenticated(local: credentials.identity, output: &output, now: now)
      } else if let end = stream.refused(output: &output, now: now) {
        take(end)
      }
    case .message(let head):
      // Echo what was read: ranges must lie in the buffer.
      stream.refuse(head, in: scratch, .badRequest("x"), output: &output)
    case .bound, .peerClosing: break
    case .ended: ends += 1
    }
  }
}
