import CXML2

/// Collects libxml2's events into an ``XMLElement``.
///
/// Lives for one parse, on its stack frame's side only.
final class TreeBuilder {
  private(set) var root: XMLElement?
  /// Namespace declarations of the root; the default one has an empty prefix.
  private(set) var declared: [(prefix: String, namespace: String)] = []
  private(set) var fault: XMLFault?
  /// The running parser, to stop it.
  var context: xmlParserCtxtPtr?

  private var open: [XMLElement] = []
  private var pendingText: [UInt8] = []
  private let depthMax: Int
  private let attributesMax: Int

  init(depthMax: Int, attributesMax: Int) {
    self.depthMax = depthMax
    self.attributesMax = attributesMax
  }

  fileprivate func stop(_ fault: XMLFault) {
    if self.fault == nil { self.fault = fault }
    if let context { xmlStopParser(context) }
  }

  fileprivate func started(_ element: XMLElement, declarations: Int) {
    guard open.count < depthMax else { return stop(.limit(.depth)) }
    guard element.attributes.count + declarations <= attributesMax else { return stop(.limit(.attributes)) }
    flushText()
    open.append(element)
  }

  fileprivate func declares(_ prefix: String, _ namespace: String) {
    if open.count == 1 { declared.append((prefix, namespace)) }
  }

  fileprivate func ended() {
    flushText()
    guard let element = open.popLast() else { return }
    if open.isEmpty {
      root = element
    } else {
      open[open.count - 1].children.append(.element(element))
    }
  }

  fileprivate func found(text: UnsafeBufferPointer<UInt8>) {
    pendingText.append(contentsOf: text)
  }

  private func flushText() {
    guard !pendingText.isEmpty else { return }
    if !open.isEmpty {
      open[open.count - 1].children.append(.text(String(decoding: pendingText, as: UTF8.self)))
    }
    pendingText.removeAll(keepingCapacity: true)
  }
}

/// Events of libxml2 that are listened to.
///
/// Whatever belongs to a document type stops the parser; errors are neither printed nor kept, since the
/// parser's flags say enough.
nonisolated(unsafe) let treeHandler: xmlSAXHandler = {  // Written once, here; only pointers to functions.
  var handler = xmlSAXHandler()
  handler.initialized = UInt32(XML_SAX2_MAGIC)
  handler.startElementNs = startElement
  handler.endElementNs = endElement
  handler.characters = characters
  // The same function, or libxml2 would guess which white space matters.
  handler.ignorableWhitespace = characters
  handler.cdataBlock = characters
  handler.comment = { user, _ in refuse(user) }
  handler.processingInstruction = { user, _, _ in refuse(user) }
  handler.internalSubset = { user, _, _, _ in refuse(user) }
  handler.entityDecl = { user, _, _, _, _, _ in refuse(user) }
  handler.reference = { user, _ in refuse(user) }
  handler.serror = { _, _ in }
  return handler
}()

private func withBuilder(_ user: UnsafeMutableRawPointer?, _ body: (TreeBuilder) -> Void) {
  guard let user else { return }
  Unmanaged<TreeBuilder>.fromOpaque(user)._withUnsafeGuaranteedRef(body)
}

private func refuse(_ user: UnsafeMutableRawPointer?) {
  withBuilder(user) { $0.stop(.restrictedXML) }
}

private func string(_ text: UnsafePointer<UInt8>?) -> String {
  guard let text else { return "" }
  return String(decoding: UnsafeBufferPointer(start: text, count: Int(xmlStrlen(text))), as: UTF8.self)
}

/// Decodes a value as libxml2 reports it while it does not replace entities.
///
/// All references are resolved but those to `&`, which come as `&#38;`, also when written `&amp;`.
private func attributeValue(_ raw: UnsafeBufferPointer<UInt8>) -> String {
  guard raw.contains(0x26) else { return String(decoding: raw, as: UTF8.self) }
  var value: [UInt8] = []
  value.reserveCapacity(raw.count)
  var index = 0
  while index < raw.count {
    value.append(raw[index])
    index += raw[index] == 0x26 && raw[index...].starts(with: "&#38;".utf8) ? 5 : 1
  }
  return String(decoding: value, as: UTF8.self)
}

private func characters(
  _ user: UnsafeMutableRawPointer?, _ text: UnsafePointer<xmlChar>?, _ count: Int32
) {
  guard let text, count > 0 else { return }
  withBuilder(user) { $0.found(text: UnsafeBufferPointer(start: text, count: Int(count))) }
}

private func endElement(
  _ user: UnsafeMutableRawPointer?, _ name: UnsafePointer<xmlChar>?, _ prefix: UnsafePointer<xmlChar>?,
  _ namespace: UnsafePointer<xmlChar>?
) {
  withBuilder(user) { $0.ended() }
}

private func startElement(
  _ user: UnsafeMutableRawPointer?, _ name: UnsafePointer<xmlChar>?, _ prefix: UnsafePointer<xmlChar>?,
  _ namespace: UnsafePointer<xmlChar>?, _ declarationCount: Int32,
  _ declarations: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?, _ attributeCount: Int32,
  _ defaultedCount: Int32, _ attributes: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?
) {
  var element = XMLElement(name: string(name), namespace: "")
  if let namespace {
    element.namespace = attributeValue(
      UnsafeBufferPointer(start: namespace, count: Int(xmlStrlen(namespace))))
  }
  if let attributes {
    // Five pointers an attribute: name, prefix, namespace, first byte of the value, one past its last.
    for index in 0..<Int(attributeCount) {
      let entry = attributes + index * 5
      var value = ""
      if let start = entry[3], let end = entry[4] {
        value = attributeValue(UnsafeBufferPointer(start: start, count: end - start))
      }
      element.attributes.append(
        XMLAttribute(name: string(entry[0]), namespace: string(entry[2]), value: value))
    }
  }
  withBuilder(user) { builder in
    builder.started(element, declarations: Int(declarationCount))
    guard let declarations else { return }
    for index in 0..<Int(declarationCount) {
      let namespace = declarations[index * 2 + 1].map {
        attributeValue(UnsafeBufferPointer(start: $0, count: Int(xmlStrlen($0))))
      }
      builder.declares(string(declarations[index * 2]), namespace ?? "")
    }
  }
}
