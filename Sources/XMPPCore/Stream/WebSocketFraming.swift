package import Bytes
package import XMLCore

/// XMPP over WebSocket (RFC 7395): `open` and `close` instead of a stream's tags, one element a message.
///
/// Stands between messages and a ``ServerStream`` or ``ClientStream``, which both speak the framing of RFC 6120: what
/// comes in is fed to the stream after ``receive(_:limits:)``, what it writes goes out through ``send(_:_:)``.
/// Messages that traffic is made of pass in both directions without being read here.
package struct WebSocketFraming: Sendable {
  package enum Side: Sendable { case server, client }

  /// What a message is to the stream.
  package enum Received: Hashable, Sendable {
    /// An element: feed the message as it is. It must be one element and no more, which the stream tells.
    case element
    /// The stream's start or end tag: feed this instead.
    case tag([UInt8])
    /// `close` where no stream is open: nothing more comes.
    case closed
    /// Nothing that may stand here: end the stream with this.
    case fault(StreamErrorCondition)
  }

  /// What goes out.
  package enum Sent {
    /// The text of a message, good until the call returns.
    case message(UnsafeRawBufferPointer)
    /// White space of a stream, for which messages have no place: send a ping (§3.8).
    case keepalive
  }

  static let namespace = "urn:ietf:params:xml:ns:xmpp-framing"

  private let side: Side
  /// Whether the next message must be `open`.
  private var expectsOpen: Bool
  /// Whether a stream's start was given to the machine.
  private var isOpen = false
  /// Where the peer is told to go when this side closes: §3.6.1.
  package var seeOtherURI: String?
  /// Where the server told us to go.
  package private(set) var toldURI: String?

  package init(_ side: Side) {
    self.side = side
    expectsOpen = side == .server
  }

  // MARK: In

  /// Says what a message is.
  ///
  /// - Parameter limits: Those of the stream.
  package mutating func receive(_ message: UnsafeRawBufferPointer, limits: XMLLimits) -> Received {
    if !expectsOpen, isOpen, Self.begins(message, "<message") { return .element }
    // §3.3: no declaration and no space before the element, and §3.4: nothing but the element.
    guard message.count <= limits.bytesMax else { return .fault(.policyViolation) }
    guard message.count > 1, message[0] == 0x3C, message[1] != 0x3F else { return .fault(.badFormat) }
    do throws(XMLFault) {
      let element = try ElementReader.read(message, limits: limits)
      switch (element.name, element.namespace) {
      case ("open", Self.namespace):
        guard expectsOpen else { return .fault(.badFormat) }
        expectsOpen = false
        isOpen = true
        return .tag(Self.header(element))
      case ("close", Self.namespace):
        toldURI = element.attribute("see-other-uri")
        guard isOpen, !expectsOpen else { return .closed }
        return .tag(Array("</stream:stream>".utf8))
      default:
        return expectsOpen || !isOpen ? .fault(.invalidNamespace) : .element
      }
    } catch {
      return .fault(StreamErrorCondition(error))
    }
  }

  private static func header(_ open: XMLElement) -> [UInt8] {
    var writer = ByteWriter()
    writer.append("<stream:stream")
    for name: StaticString in ["to", "from", "id", "version"] {
      if let value = open.attribute("\(name)") { writer.appendAttribute(name, value) }
    }
    let language = open.attributes.first { $0.name == "lang" && $0.namespace == Namespace.xml }
    if let language { writer.appendAttribute("xml:lang", language.value) }
    writer.append(" xmlns=\"jabber:client\" xmlns:stream=\"http://etherx.jabber.org/streams\">")
    return writer.take()
  }

  // MARK: Out

  /// Turns what a stream has written into messages.
  ///
  /// - Parameter bytes: Whole elements and tags, as a machine writes them in one call.
  package mutating func send(_ bytes: UnsafeRawBufferPointer, _ emit: (Sent) -> Void) {
    var framer = StanzaFramer(
      limits: XMLLimits(bytesMax: 1 << 30, depthMax: 16, attributesMax: 64),
      isOpen: !Self.begins(bytes, "<stream:stream"))
    var offset = 0
    var isAlone = true
    var writer = ByteWriter()
    // Our own words are in order; if they were not, the rest would stay unsaid and the peer's deadline end it.
    while let item = try? framer.next(bytes, &offset) {
      writer.removeAll()
      switch item {
      case .whitespace:
        if isAlone, offset == bytes.count { emit(.keepalive) }
        continue
      case .header(let tag, _):
        guard let header = try? ElementReader.readHeader(tag, limits: XMLLimits()) else { return }
        if side == .client { expectsOpen = true }
        appendOpen(header, to: &writer)
      case .end:
        writer.append("<close xmlns=\"urn:ietf:params:xml:ns:xmpp-framing\"")
        if let seeOtherURI { writer.appendAttribute("see-other-uri", seeOtherURI) }
        writer.append("/>")
      case .stanza(let element):
        // §3.4: after it the client opens anew.
        if side == .server, Self.begins(element, "<success") { expectsOpen = true }
        Self.appendStandalone(element, to: &writer)
      }
      isAlone = false
      writer.bytes.withUnsafeBytes { emit(.message($0)) }
    }
  }

  private func appendOpen(_ header: StreamHeader, to writer: inout ByteWriter) {
    writer.append("<open xmlns=\"urn:ietf:params:xml:ns:xmpp-framing\"")
    if let to = header.to { writer.appendAttribute("to", to) }
    if let from = header.from { writer.appendAttribute("from", from) }
    if let id = header.id { writer.appendAttribute("id", id) }
    if let version = header.version { writer.appendAttribute("version", version) }
    writer.append("/>")
  }

  /// Appends an element of a stream with the namespaces that the stream would have declared for it (§3.3.3).
  ///
  /// - Parameter element: As our writers write it: a default namespace of its own, where there is one, is declared by
  ///   double quotes.
  package static func appendStandalone(_ element: UnsafeRawBufferPointer, to writer: inout ByteWriter) {
    let nameEnd = element.firstIndex { $0 == 0x20 || $0 == 0x2F || $0 == 0x3E } ?? element.count
    writer.append(UnsafeRawBufferPointer(rebasing: element[..<nameEnd]))
    if begins(element, "<stream:") {
      writer.append(" xmlns:stream=\"http://etherx.jabber.org/streams\"")
    } else if !declaresNamespace(element, from: nameEnd) {
      writer.append(" xmlns=\"jabber:client\"")
    }
    writer.append(UnsafeRawBufferPointer(rebasing: element[nameEnd...]))
  }

  private static func declaresNamespace(_ element: UnsafeRawBufferPointer, from start: Int) -> Bool {
    var index = start
    var isQuoted = false
    while index < element.count {
      let byte = element[index]
      if byte == 0x22 { isQuoted.toggle() }
      if !isQuoted {
        if byte == 0x3E { return false }
        if byte == 0x20, begins(UnsafeRawBufferPointer(rebasing: element[index...]), " xmlns=") {
          return true
        }
      }
      index += 1
    }
    return false
  }

  private static func begins(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    word.withUTF8Buffer { bytes.count >= $0.count && bytes.prefix($0.count).elementsEqual($0) }
  }
}
