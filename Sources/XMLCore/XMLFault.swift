/// What is wrong with the XML of a peer.
///
/// Each case ends the stream it came on, and only that.
///
/// `XMPPCore` maps a case to the stream error condition of the same name (RFC 6120 §4.9.3).
package enum XMLFault: Error, Hashable, Sendable {
  /// Violates XML 1.0 or Namespaces in XML: RFC 6120 §4.9.3.13.
  case notWellFormed
  /// A comment, processing instruction, document type or entity declaration: RFC 6120 §4.9.3.18.
  case restrictedXML
  /// An XML declaration that names another encoding than UTF-8: RFC 6120 §4.9.3.22.
  case unsupportedEncoding
  /// The stream element or its content namespace has the wrong name: RFC 6120 §4.9.3.10.
  case invalidNamespace
  /// Well-formed, but not what may stand at this place: RFC 6120 §4.9.3.1.
  case badFormat
  /// A limit of ``XMLLimits`` was passed; policy-violation: RFC 6120 §4.9.3.14.
  case limit(XMLLimit)
}

/// Which of the ``XMLLimits`` was passed.
package enum XMLLimit: Hashable, Sendable {
  case bytes, depth, attributes
}

/// Bounds on one stanza or stream header.
package struct XMLLimits: Hashable, Sendable {
  /// Bytes on the wire from `<` to the last `>`.
  package var bytesMax: Int
  /// Nested elements, the stanza itself being the first; at most 16 are followed.
  package var depthMax: Int
  /// Attributes of one start tag, namespace declarations included.
  package var attributesMax: Int

  package init(bytesMax: Int = 65_536, depthMax: Int = 8, attributesMax: Int = 32) {
    self.bytesMax = bytesMax
    self.depthMax = depthMax
    self.attributesMax = attributesMax
  }
}
