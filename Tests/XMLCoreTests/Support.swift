import XMLCore

/// A framed item that owns its bytes; white space runs are joined, since reads decide how they are split.
enum Item: Hashable {
  case header(String, selfClosed: Bool)
  case stanza(String)
  case whitespace(Int)
  case end
  case fault(XMLFault)
}

/// Feeds chunks to a framer until they are used up or one is at fault.
func frame(_ chunks: [[UInt8]], limits: XMLLimits = XMLLimits()) -> [Item] {
  var framer = StanzaFramer(limits: limits)
  var items: [Item] = []
  for chunk in chunks {
    let fault = chunk.withUnsafeBytes { bytes in collect(&framer, bytes, &items) }
    if let fault {
      items.append(.fault(fault))
      break
    }
  }
  return items
}

func collect(
  _ framer: inout StanzaFramer, _ bytes: UnsafeRawBufferPointer, _ items: inout [Item]
) -> XMLFault? {
  var offset = 0
  do throws(XMLFault) {
    while let item = try framer.next(bytes, &offset) {
      switch item {
      case .header(let tag, let selfClosed):
        items.append(.header(String(decoding: tag, as: UTF8.self), selfClosed: selfClosed))
      case .stanza(let stanza): items.append(.stanza(String(decoding: stanza, as: UTF8.self)))
      case .whitespace(let count):
        if case .whitespace(let before)? = items.last {
          items[items.count - 1] = .whitespace(before + count)
        } else {
          items.append(.whitespace(count))
        }
      case .end: items.append(.end)
      }
    }
    return nil
  } catch {
    return error
  }
}

func frame(_ text: String, limits: XMLLimits = XMLLimits()) -> [Item] {
  frame([Array(text.utf8)], limits: limits)
}

/// Every way to feed the text that matters: whole, one byte at a time, cut once at each offset.
func everyCut(_ bytes: [UInt8]) -> [[[UInt8]]] {
  var ways = [[bytes], bytes.map { [$0] }]
  for cut in 0...bytes.count {
    ways.append([Array(bytes[..<cut]), Array(bytes[cut...])])
  }
  return ways
}

let header =
  "<stream:stream to=\"fcm-xmpp.googleapis.com\" version=\"1.0\" xmlns=\"jabber:client\""
  + " xmlns:stream=\"http://etherx.jabber.org/streams\">"

/// What a reader made of a message, with the scratch ranges resolved.
struct Message: Hashable {
  var kind: MessageKind
  var id: [UInt8]?
  var to: [UInt8]?
  var from: [UInt8]?
  var text: [UInt8]
}

func narrow(_ stanza: [UInt8]) -> Message? {
  var scratch: [UInt8] = []
  guard let head = stanza.withUnsafeBytes({ NarrowReader.read($0, into: &scratch) }) else { return nil }
  return Message(
    kind: head.kind, id: head.id.map { Array(scratch[$0]) }, to: head.to.map { Array(scratch[$0]) },
    from: head.from.map { Array(scratch[$0]) }, text: Array(scratch[head.text]))
}

func element(_ stanza: [UInt8], limits: XMLLimits = XMLLimits()) -> Result<XMLElement, XMLFault> {
  stanza.withUnsafeBytes { bytes in
    do throws(XMLFault) {
      return .success(try ElementReader.read(bytes, limits: limits))
    } catch {
      return .failure(error)
    }
  }
}

func streamHeader(_ tag: String) -> Result<StreamHeader, XMLFault> {
  Array(tag.utf8).withUnsafeBytes { bytes in
    do throws(XMLFault) {
      return .success(try ElementReader.readHeader(bytes, limits: XMLLimits()))
    } catch {
      return .failure(error)
    }
  }
}

/// What the narrow reader ought to find in an element, nil when it is another shape.
func message(_ element: XMLElement) -> Message? {
  guard element.isNamed("message", Namespace.client), let gcm = element.child("gcm", Namespace.gcm),
    element.elements.count == 1, gcm.elements.isEmpty
  else { return nil }
  var kind = MessageKind.none
  if var type = element.attribute("type") {
    kind = type.withUTF8 { MessageKind(UnsafeRawBufferPointer($0)) }
  }
  func bytes(_ name: String) -> [UInt8]? { element.attribute(name).map { Array($0.utf8) } }
  return Message(
    kind: kind, id: bytes("id"), to: bytes("to"), from: bytes("from"), text: Array(gcm.text.utf8))
}
