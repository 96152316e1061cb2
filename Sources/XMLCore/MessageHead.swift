/// The `type` of a message stanza.
///
/// Anything unknown counts as normal (RFC 6121 §5.2.2).
package enum MessageKind: Hashable, Sendable {
  /// No `type` attribute: what the protocol uses for acks, nacks and control.
  case none
  case normal
  case error
  case other

  package init(_ text: UnsafeRawBufferPointer) {
    func equals(_ word: StaticString) -> Bool { word.withUTF8Buffer { $0.elementsEqual(text) } }
    self = equals("normal") ? .normal : equals("error") ? .error : .other
  }
}

/// A message stanza holding one `gcm` element: where its parts lie in the scratch buffer it was read into.
///
/// Good until the buffer is used again.
package struct MessageHead: Hashable, Sendable {
  package var kind: MessageKind
  /// The attribute's value with references decoded; nil when there is none.
  package var id: Range<Int>?
  package var to: Range<Int>?
  package var from: Range<Int>?
  /// Text of the `gcm` element, decoded: references resolved once, legal XML characters, UTF-8.
  ///
  /// No more is known.
  package var text: Range<Int>

  package init(
    kind: MessageKind = .none, id: Range<Int>? = nil, to: Range<Int>? = nil, from: Range<Int>? = nil,
    text: Range<Int>
  ) {
    self.kind = kind
    self.id = id
    self.to = to
    self.from = from
    self.text = text
  }
}

/// Namespaces of the protocol.
package enum Namespace {
  package static let client = "jabber:client"
  package static let streams = "http://etherx.jabber.org/streams"
  package static let gcm = "google:mobile:data"
  package static let xml = "http://www.w3.org/XML/1998/namespace"
}
