import Bytes
import XMLCore

extension ClientStream {
  func receive(
    _ element: XMLElement, _ scratch: inout [UInt8], _ output: inout ByteWriter
  ) -> ClientEvent? {
    if let query = InfoQuery(element) {
      answer(query, &output)
      return nil
    }
    guard element.isNamed("message", Namespace.client) else { return nil }
    let gcm = element.child("gcm", Namespace.gcm)
    if element.attribute("type") == "error" {
      let error = element.child("error", Namespace.client)
      let parts = error?.elements.filter { $0.namespace == QueryNamespace.stanzas } ?? []
      var text = parts.first { $0.name == "text" }?.text ?? ""
      while text.last?.isNewline == true { text.removeLast() }
      return .refused(
        RefusedMessage(
          id: element.attribute("id"), code: error?.attribute("code"),
          condition: parts.first { $0.name != "text" }?.name ?? "undefined-condition", text: text,
          json: gcm?.text))
    }
    guard let gcm, gcm.elements.isEmpty else { return nil }
    return .message(element.head(gcm, into: &scratch))
  }

  func answer(_ query: InfoQuery, _ output: inout ByteWriter) {
    guard query.kind == .get || query.kind == .set, !isEndSent else { return }
    let sender = query.from
    if query.asks("ping", QueryNamespace.ping) {
      output.appendReply("result", to: query, recipient: sender)
      output.append("/>")
    } else {
      output.appendReply("error", to: query, recipient: sender)
      output.append(
        "><error type=\"cancel\"><service-unavailable xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/></error></iq>"
      )
    }
  }
}
