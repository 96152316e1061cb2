/// An element as a value: for everything that is not hot.
package struct XMLElement: Hashable, Sendable {
  /// Local name.
  package var name: String
  /// Namespace, empty for none.
  package var namespace: String
  /// In document order, without namespace declarations.
  package var attributes: [XMLAttribute]
  package var children: [XMLNode]

  package init(
    name: String, namespace: String, attributes: [XMLAttribute] = [], children: [XMLNode] = []
  ) {
    self.name = name
    self.namespace = namespace
    self.attributes = attributes
    self.children = children
  }

  /// Value of an attribute without namespace.
  package func attribute(_ name: String) -> String? {
    attributes.first { $0.name == name && $0.namespace.isEmpty }?.value
  }

  /// All text directly inside, joined.
  package var text: String {
    var joined = ""
    for case .text(let part) in children { joined += part }
    return joined
  }

  /// Child elements in order.
  package var elements: [XMLElement] {
    children.compactMap { if case .element(let element) = $0 { element } else { nil } }
  }

  /// First child element of that name.
  package func child(_ name: String, _ namespace: String) -> XMLElement? {
    elements.first { $0.name == name && $0.namespace == namespace }
  }

  package func isNamed(_ name: String, _ namespace: String) -> Bool {
    self.name == name && self.namespace == namespace
  }
}

/// Content of an ``XMLElement``.
package enum XMLNode: Hashable, Sendable {
  case element(XMLElement)
  /// Never empty; two never stand side by side.
  case text(String)
}

/// An attribute with its value normalised and decoded.
package struct XMLAttribute: Hashable, Sendable {
  /// Local name.
  package var name: String
  /// Namespace, empty for none.
  package var namespace: String
  package var value: String

  package init(name: String, namespace: String = "", value: String) {
    self.name = name
    self.namespace = namespace
    self.value = value
  }
}

/// What a stream's start tag says.
package struct StreamHeader: Hashable, Sendable {
  package var to: String?
  package var from: String?
  package var id: String?
  package var version: String?
  package var language: String?
  /// The namespaces that stanzas inherit.
  package var context: StreamContext

  /// Whether the peer speaks XMPP 1.0 or later: RFC 6120 §4.7.5.
  package var isVersionOne: Bool {
    guard let version else { return false }
    let parts = version.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2,
      parts.allSatisfy({
        (1...9).contains($0.utf8.count) && $0.utf8.allSatisfy { (0x30...0x39).contains($0) }
      }),
      let major = UInt32(parts[0])
    else { return false }
    return major >= 1
  }
}
