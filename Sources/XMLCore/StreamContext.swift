import Bytes

/// The namespaces that a stream's start tag declares for the stanzas in it.
package struct StreamContext: Hashable, Sendable {
  /// Start tag of a stand-in for the stream, put before a stanza when libxml2 reads it.
  let opening: [UInt8]
  static let closing: StaticString = "</s>"

  /// `xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams"`, what nearly all peers declare.
  package static let usual = StreamContext(prefixes: [(prefix: "stream", namespace: Namespace.streams)])

  /// A context whose default namespace is `jabber:client`.
  init(prefixes: [(prefix: String, namespace: String)]) {
    var writer = ByteWriter(capacity: 96)
    writer.append("<s xmlns=\"jabber:client\"")
    for (prefix, namespace) in prefixes {
      writer.append(" xmlns:")
      writer.append(prefix)
      writer.append("=\"")
      // Names and values that libxml2 read hold legal characters only.
      _ = writer.appendEscapedAttribute(namespace)
      writer.append("\"")
    }
    writer.append(">")
    opening = writer.take()
  }
}
