import Bytes
import Seams
import XMLCore

extension ServerStream {
  func receive(
    _ element: XMLElement, _ scratch: inout [UInt8], _ output: inout ByteWriter, _ now: Moment
  ) -> ServerEvent? {
    if element.isNamed("error", Namespace.streams) {
      let condition = element.elements.first {
        $0.namespace == QueryNamespace.streamErrors && $0.name != "text"
      }
      sendHeader(&output)
      sendEnd(&output)
      return .ended(.peerFault(condition?.name ?? "undefined-condition"))
    }
    switch state {
    case .awaitingLogin, .awaitingResponse:
      return receiveBeforeLogin(element, &output)
    case .awaitingBind:
      return receiveBeforeBind(element, &output, now)
    case .bound:
      return receiveBound(element, &scratch, &output)
    case .awaitingHeader, .awaitingVerdict, .awaitingSecondHeader, .awaitingClose, .ended:
      // The framer gives no stanza before a header, and `next` feeds nothing in the other three.
      return nil
    }
  }

  // MARK: Binding

  private func receiveBeforeBind(
    _ element: XMLElement, _ output: inout ByteWriter, _ now: Moment
  ) -> ServerEvent? {
    guard let query = InfoQuery(element), query.kind == .set, query.asks("bind", QueryNamespace.bind) else {
      return end(with: .notAuthorized, "stanza before resource binding", &output)
    }
    let wished = query.payload?.child("resource", QueryNamespace.bind)?.text ?? ""
    // Eight digits are added; RFC 7622 §3.4 allows 1,023 bytes and no control characters.
    guard wished.utf8.count <= 1_015, wished.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
      output.appendRefusal(of: query, type: "modify", .badRequest)
      return nil
    }
    let resource = (wished.isEmpty ? "weir" : wished) + hexText(random(), 8)
    let bound = JID(local: login ?? "", domain: domain, resource: resource)
    output.appendAnswer("result", to: query)
    output.append("><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"><jid>")
    _ = output.appendEscapedText(bound.description)
    output.append("</jid>")
    if let windowOffer,
      let size = query.payload?.child("window", ExtensionNamespace.window)?.attribute("size"),
      let wished = ExtensionNamespace.number(size, in: 1...ExtensionNamespace.windowMax)
    {
      let granted = min(wished, windowOffer)
      window = granted
      output.appendWindow("size", granted)
    }
    // The space is the first keepalive; the service that clients know sends it here.
    output.append("</bind></iq> ")
    jid = bound
    state = .bound
    lastOutput = now
    return .bound(bound)
  }

  // MARK: After binding

  private func receiveBound(
    _ element: XMLElement, _ scratch: inout [UInt8], _ output: inout ByteWriter
  ) -> ServerEvent? {
    if let query = InfoQuery(element) {
      answer(query, &output)
      return nil
    }
    if element.isNamed("presence", Namespace.client) { return nil }
    guard element.isNamed("message", Namespace.client) else {
      return end(with: .unsupportedStanzaType, "element that is no stanza", &output)
    }
    return receive(message: element, &scratch, &output)
  }

  private func receive(
    message element: XMLElement, _ scratch: inout [UInt8], _ output: inout ByteWriter
  ) -> ServerEvent? {
    guard element.attribute("type") != "error" else { return nil }
    let gcm = element.child("gcm", Namespace.gcm)
    if let gcm, gcm.elements.isEmpty { return .message(element.head(gcm, into: &scratch)) }
    guard let jid else { return nil }
    let text =
      gcm == nil
      ? "InvalidJson: JSON_PARSING_ERROR : Missing gcm element"
      : "InvalidJson: JSON_PARSING_ERROR : Markup inside the gcm element"
    var id = element.attribute("id")
    if id != nil {
      id?.withUTF8 {
        output.appendStanzaError(.badRequest(text), id: UnsafeRawBufferPointer($0), to: jid, json: nil)
      }
    } else {
      output.appendStanzaError(.badRequest(text), id: nil, to: jid, json: nil)
    }
    return nil
  }

  /// Every get and set is answered: libraries wait for it.
  private func answer(_ query: InfoQuery, _ output: inout ByteWriter) {
    switch query.kind {
    case .result, .error:
      break
    case nil:
      output.appendRefusal(of: query, type: "modify", .badRequest)
    case .get, .set:
      if query.asks("ping", QueryNamespace.ping) {
        output.appendAnswer("result", to: query)
        output.append("/>")
      } else if query.asks("session", QueryNamespace.session) {
        output.appendAnswer("result", to: query, from: host ?? domain)
        output.append("/>")
      } else if query.asks("bind", QueryNamespace.bind) {
        output.appendRefusal(of: query, type: "cancel", .notAllowed)
      } else {
        output.appendRefusal(of: query, type: "cancel", .serviceUnavailable)
      }
    }
  }
}
