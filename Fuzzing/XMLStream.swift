// modules: Bytes Seams XMLCore
import Bytes
import Seams
import XMLCore

/// Bytes into the framer and both readers.
///
/// Holds that a cut changes nothing, that the narrow reader sees what libxml2 sees or steps aside, and that text
/// written is text read. First byte of an input: bit 0 puts a stream header in front, the rest seeds the cuts.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzXMLStream(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  guard let data, size > 0 else { return 0 }
  let input = UnsafeBufferPointer(start: data, count: size)
  var stream = input[0] & 1 == 1 ? header : []
  stream += input.dropFirst()
  let whole = frame(stream) { _ in Int.max }
  var chance = SeededChance(seed: UInt64(input[0]))
  guard frame(stream, { _ in 1 }) == whole,
    frame(stream, { _ in 1 + Int(truncatingIfNeeded: chance.next() % 40) }) == whole
  else { fatalError("a cut changed the items") }
  for case .stanza(let stanza) in whole { compare(stanza) }
  compare(Array(input.dropFirst()))
  return 0
}

private let header = Array(
  "<stream:stream version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>".utf8)

private enum Item: Equatable {
  case header([UInt8], Bool), stanza([UInt8]), whitespace(Int), end, fault(XMLFault)
}

private func frame(_ stream: [UInt8], _ step: (Int) -> Int) -> [Item] {
  var framer = StanzaFramer(limits: XMLLimits(bytesMax: 2_000))
  var items: [Item] = []
  var start = 0
  while start < stream.count {
    let end = start + min(step(start), stream.count - start)
    let isFaulty = stream[start..<end].withUnsafeBytes { chunk in
      var offset = 0
      do throws(XMLFault) {
        while let item = try framer.next(chunk, &offset) { append(item, &items) }
        return false
      } catch {
        items.append(.fault(error))
        return true
      }
    }
    if isFaulty { break }
    if framer.carriedBytes > 2_000 { fatalError("more is held than the limit") }
    start = end
  }
  return items
}

private func append(_ item: FramedItem, _ items: inout [Item]) {
  switch item {
  case .header(let tag, let selfClosed):
    // Whatever it says, reading it must come to an end.
    _ = try? ElementReader.readHeader(tag, limits: XMLLimits())
    items.append(.header(Array(tag), selfClosed))
  case .stanza(let stanza): items.append(.stanza(Array(stanza)))
  case .whitespace(let count):
    if case .whitespace(let before)? = items.last {
      items[items.count - 1] = .whitespace(before + count)
    } else {
      items.append(.whitespace(count))
    }
  case .end: items.append(.end)
  }
}

private func compare(_ stanza: [UInt8]) {
  var scratch: [UInt8] = []
  let head = stanza.withUnsafeBytes { NarrowReader.read($0, into: &scratch) }
  let element = stanza.withUnsafeBytes { try? ElementReader.read($0, limits: XMLLimits()) }
  guard let head else { return }
  guard let element, element.isNamed("message", Namespace.client), element.elements.count == 1,
    let gcm = element.child("gcm", Namespace.gcm), gcm.elements.isEmpty
  else { fatalError("read what libxml2 does not") }
  func equal(_ range: Range<Int>?, _ text: String?) -> Bool {
    guard let range, let text else { return range == nil && text == nil }
    return scratch[range].elementsEqual(text.utf8)
  }
  var type = element.attribute("type") ?? ""
  let kind = type.withUTF8 { MessageKind(UnsafeRawBufferPointer($0)) }
  guard equal(head.text, gcm.text), equal(head.id, element.attribute("id")),
    equal(head.to, element.attribute("to")), equal(head.from, element.attribute("from")),
    head.kind == (element.attribute("type") == nil ? .none : kind)
  else { fatalError("read another value than libxml2") }
  rewrite(Array(scratch[head.text]))
}

private func rewrite(_ text: [UInt8]) {
  var writer = ByteWriter()
  writer.append("<message><gcm xmlns=\"google:mobile:data\">")
  guard text.withUnsafeBytes({ writer.appendEscapedText($0) }) else {
    fatalError("text read cannot be written")
  }
  writer.append("</gcm></message>")
  var scratch: [UInt8] = []
  let again = writer.bytes.withUnsafeBytes { NarrowReader.read($0, into: &scratch) }
  guard let again, scratch[again.text].elementsEqual(text) else {
    fatalError("text written is not text read")
  }
}
