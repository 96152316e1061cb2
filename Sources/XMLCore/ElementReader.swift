import Bytes
import CXML2

/// Reads whole elements with libxml2: everything that is not the hot shape, and the oracle for what is.
///
/// A context lives for one call, so that a peer's names are not kept, and no option is set that would
/// resolve entities, fetch anything or lift libxml2's own limits.
package enum ElementReader {
  /// Reads one stanza.
  ///
  /// - Parameter stanza: A whole element as ``StanzaFramer`` cuts it; anything else is not well-formed.
  package static func read(
    _ stanza: UnsafeRawBufferPointer, in context: StreamContext = .usual, limits: XMLLimits
  ) throws(XMLFault) -> XMLElement {
    guard XMLText.isLegal(stanza) else { throw .notWellFormed }
    var document = ByteWriter(capacity: context.opening.count + stanza.count + 8)
    document.append(context.opening)
    document.append(stanza)
    document.append(StreamContext.closing)
    let root = try parse(document, depthMax: limits.depthMax + 1, limits).root
    guard case .element(let element)? = root.children.first, root.children.count == 1 else {
      throw .notWellFormed
    }
    return element
  }

  /// Reads a stream's start tag and checks the namespaces it must declare (RFC 6120 §4.8).
  ///
  /// - Parameter tag: From `<` to `>`, self-closed or not.
  package static func readHeader(
    _ tag: UnsafeRawBufferPointer, limits: XMLLimits
  ) throws(XMLFault) -> StreamHeader {
    guard XMLText.isLegal(tag), tag.count > 2, tag[tag.count - 1] == 0x3E else { throw .notWellFormed }
    var document = ByteWriter(capacity: tag.count + 8)
    let isSelfClosed = tag[tag.count - 2] == 0x2F
    document.append(UnsafeRawBufferPointer(rebasing: tag.dropLast(isSelfClosed ? 2 : 1)))
    document.append("/>")
    let (root, declared) = try parse(document, depthMax: 1, limits)
    guard root.namespace == Namespace.streams else { throw .invalidNamespace }
    guard root.name == "stream" else { throw .badFormat }
    guard declared.contains(where: { $0.prefix.isEmpty && $0.namespace == Namespace.client }) else {
      throw .invalidNamespace
    }
    let prefixes = declared.filter { !$0.prefix.isEmpty }
    let isUsual = prefixes.count == 1 && prefixes[0] == ("stream", Namespace.streams)
    return StreamHeader(
      to: root.attribute("to"), from: root.attribute("from"), id: root.attribute("id"),
      version: root.attribute("version"),
      language: root.attributes.first { $0.name == "lang" && $0.namespace == Namespace.xml }?.value,
      context: isUsual ? .usual : StreamContext(prefixes: prefixes))
  }

  private static let libraryIsReady: Void = xmlInitParser()

  private static func parse(
    _ document: ByteWriter, depthMax: Int, _ limits: XMLLimits
  ) throws(XMLFault) -> (root: XMLElement, declared: [(prefix: String, namespace: String)]) {
    _ = libraryIsReady
    let builder = TreeBuilder(depthMax: depthMax, attributesMax: limits.attributesMax)
    let isClean = document.bytes.withUnsafeBytes { bytes in
      let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
      guard let size = Int32(exactly: bytes.count), let context = xmlCreateMemoryParserCtxt(start, size)
      else {
        return false
      }
      defer { xmlFreeParserCtxt(context) }
      xmlCtxtUseOptions(
        context,
        Int32(XML_PARSE_NONET.rawValue | XML_PARSE_NOERROR.rawValue | XML_PARSE_NOWARNING.rawValue))
      context.pointee.sax.pointee = treeHandler
      context.pointee.userData = Unmanaged.passUnretained(builder).toOpaque()
      builder.context = context
      let status = xmlParseDocument(context)
      builder.context = nil
      return status == 0 && context.pointee.wellFormed == 1 && context.pointee.nsWellFormed == 1
    }
    if let fault = builder.fault { throw fault }
    guard isClean, let root = builder.root else { throw .notWellFormed }
    return (root, builder.declared)
  }
}
