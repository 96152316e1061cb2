import Bytes
import Seams
import XMLCore

extension ClientStream {
  func receive(
    step element: XMLElement, _ output: inout ByteWriter, _ now: Moment
  ) -> ClientEvent? {
    switch state {
    case .awaitingFeatures where element.isNamed("features", Namespace.streams):
      let mechanisms = element.child("mechanisms", QueryNamespace.sasl)?.elements ?? []
      guard mechanisms.contains(where: { $0.name == "mechanism" && $0.text == "PLAIN" }) else {
        return end(.failed(.mechanismMissing), &output)
      }
      if !isPipelined { sendCredentials(&output) }
      wait(for: .awaitingSuccess, now)
      return nil
    case .awaitingSuccess where element.isNamed("success", QueryNamespace.sasl):
      framer.reset()
      if !isPipelined { output.appendClientHeader(to: login.host) }
      wait(for: .awaitingSecondHeader, now)
      return nil
    case .awaitingSuccess where element.isNamed("failure", QueryNamespace.sasl):
      let names = element.elements.map(\.name)
      return end(
        .failed(.loginRefused(names.compactMap(SASLFailure.init).first ?? .notAuthorized)), &output)
    case .awaitingSecondFeatures where element.isNamed("features", Namespace.streams):
      guard element.child("bind", QueryNamespace.bind) != nil else {
        return end(.failed(.bindingRefused("feature-not-implemented")), &output)
      }
      let session = element.child("session", QueryNamespace.session)
      needsSession = session.map { !$0.elements.contains { $0.name == "optional" } } ?? false
      offersWindow = element.child("window", ExtensionNamespace.window) != nil
      if !isPipelined { askForBinding(&output) }
      wait(for: .awaitingBinding, now)
      return nil
    case .awaitingBinding:
      return receive(bindingIn: element, &output, now)
    case .awaitingSession:
      guard let query = InfoQuery(element) else { return skipped(element, &output) }
      guard query.id == "session" else {
        answer(query, &output)
        return nil
      }
      // Refused or not: nothing depends on it (RFC 6121 appendix E).
      return ready()
    default:
      return skipped(element, &output)
    }
  }

  func sendCredentials(_ output: inout ByteWriter) {
    output.append("<auth mechanism=\"PLAIN\" xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"")
    if login.window != nil { output.append(" xmlns:weir=\"urn:weir:window:0\" weir:window=\"true\"") }
    output.append(">")
    output.append(login.credentials.encoded)
    output.append("</auth>")
  }

  func askForBinding(_ output: inout ByteWriter) {
    output.append("<iq type=\"set\" id=\"bind\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"")
    let window = offersWindow ? login.window : nil
    guard login.resource != nil || window != nil else {
      output.append("/></iq>")
      return
    }
    output.append(">")
    if let resource = login.resource {
      output.append("<resource>")
      _ = output.appendEscapedText(resource)
      output.append("</resource>")
    }
    if let window { output.appendWindow("size", window) }
    output.append("</bind></iq>")
  }

  func receive(
    bindingIn element: XMLElement, _ output: inout ByteWriter, _ now: Moment
  ) -> ClientEvent? {
    guard let query = InfoQuery(element) else { return skipped(element, &output) }
    guard query.id == "bind" || query.id == nil, query.kind == .result || query.kind == .error else {
      answer(query, &output)
      return nil
    }
    guard query.kind == .result, query.asks("bind", QueryNamespace.bind),
      let address = query.payload?.child("jid", QueryNamespace.bind).flatMap({ JID($0.text) })
    else {
      let error = element.child("error", Namespace.client)
      let condition = error?.elements.first { $0.namespace == QueryNamespace.stanzas && $0.name != "text" }
      return end(.failed(.bindingRefused(condition?.name ?? "undefined-condition")), &output)
    }
    jid = address
    if offersWindow, login.window != nil {
      let granted = query.payload?.child("window", ExtensionNamespace.window)?.attribute("size")
      grantedWindow = granted.flatMap { ExtensionNamespace.number($0, in: 1...ExtensionNamespace.windowMax) }
    }
    guard needsSession else { return ready() }
    output.append(
      "<iq type=\"set\" id=\"session\"><session xmlns=\"urn:ietf:params:xml:ns:xmpp-session\"/></iq>")
    wait(for: .awaitingSession, now)
    return nil
  }

  func ready() -> ClientEvent? {
    guard let jid else { return nil }
    state = .ready
    return .ready(jid)
  }

  /// Stanzas that may come between the steps after login are let pass; anything else is a fault.
  func skipped(_ element: XMLElement, _ output: inout ByteWriter) -> ClientEvent? {
    switch state {
    case .awaitingBinding, .awaitingSession:
      if element.namespace == Namespace.client { return nil }
      return unexpected(&output)
    default:
      return unexpected(&output)
    }
  }
}
