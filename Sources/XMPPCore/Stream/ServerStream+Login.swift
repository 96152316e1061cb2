package import Bytes
package import Seams
import XMLCore

extension ServerStream {
  /// The credentials were right: says so and awaits a new header.
  ///
  /// Feed what is left of the chunk.
  ///
  /// - Parameters:
  ///   - local: Local part of the address to be bound.
  ///   - windowMax: Largest window the peer may ask for; nil offers none.
  package func authenticated(
    local: String, windowMax: Int? = nil, output: inout ByteWriter, now: Moment
  ) {
    guard state == .awaitingVerdict else { return }
    windowOffer = knowsWindows ? windowMax.map { min($0, ExtensionNamespace.windowMax) } : nil
    output.append("<success xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"/>")
    login = local
    state = .awaitingSecondHeader
    isHeaderSent = false
    framer.reset()
    framer.limits.bytesMax = limits.stanzaBytesMax
  }

  /// The credentials were wrong, or could not be looked up (`temporaryAuthFailure`).
  ///
  /// - Returns: The end of the stream, when that was the last try.
  package func refused(
    _ failure: SASLFailure = .notAuthorized, output: inout ByteWriter, now: Moment
  ) -> ServerEvent? {
    guard state == .awaitingVerdict else { return nil }
    return failLogin(failure, &output)
  }

  func receive(_ header: StreamHeader, _ selfClosed: Bool, _ output: inout ByteWriter) -> ServerEvent? {
    host = header.to
    context = header.context
    guard header.isVersionOne else {
      return end(
        with: .unsupportedVersion, "version \(header.version == nil ? "absent" : "unknown")", &output)
    }
    sendHeader(&output)
    if selfClosed {
      sendEnd(&output)
      return .ended(.selfClosedHeader)
    }
    if state == .awaitingHeader {
      output.append(
        "<stream:features><mechanisms xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\">"
          + "<mechanism>PLAIN</mechanism></mechanisms></stream:features>")
      state = .awaitingLogin
    } else {
      output.append(
        "<stream:features><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"/>"
          + "<session xmlns=\"urn:ietf:params:xml:ns:xmpp-session\"><optional/></session>")
      if let windowOffer { output.appendWindow("max", windowOffer) }
      output.append("</stream:features>")
      state = .awaitingBind
    }
    return nil
  }

  /// `auth`, `response` and `abort`; anything else before login ends the stream.
  func receiveBeforeLogin(_ element: XMLElement, _ output: inout ByteWriter) -> ServerEvent? {
    guard element.namespace == QueryNamespace.sasl else {
      return end(with: .notAuthorized, "stanza before login", &output)
    }
    switch (element.name, state) {
    case ("auth", _):
      guard element.attribute("mechanism") == "PLAIN" else { return failLogin(.invalidMechanism, &output) }
      knowsWindows = element.attributes.contains {
        $0.namespace == ExtensionNamespace.window && $0.name == "window" && $0.value == "true"
      }
      guard element.children.isEmpty else { return receive(message: element, &output) }
      output.append("<challenge xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"/>")
      state = .awaitingResponse
      return nil
    case ("response", .awaitingResponse):
      return receive(message: element, &output)
    case ("abort", _):
      // Not counted as a try; the login deadline bounds it.
      output.append("<failure xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"><aborted/></failure>")
      state = .awaitingLogin
      return nil
    default:
      return end(with: .notAuthorized, "SASL element out of turn", &output)
    }
  }

  private func receive(message element: XMLElement, _ output: inout ByteWriter) -> ServerEvent? {
    guard element.elements.isEmpty else { return failLogin(.malformedRequest, &output) }
    let text = element.text
    // RFC 6120 §6.4.2: a lone `=` stands for a message of no bytes.
    guard let message = text == "=" ? [] : Base64.decode(text) else {
      return failLogin(.incorrectEncoding, &output)
    }
    do throws(SASLFailure) {
      let credentials = try PlainCredentials(message: message)
      state = .awaitingVerdict
      return .authenticate(credentials)
    } catch {
      return failLogin(error, &output)
    }
  }

  private func failLogin(_ failure: SASLFailure, _ output: inout ByteWriter) -> ServerEvent? {
    output.append("<failure xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"><")
    output.append(failure.rawValue)
    output.append("/></failure>")
    failedLogins += 1
    state = .awaitingLogin
    guard failedLogins >= limits.loginTriesMax else { return nil }
    // RFC 6120 §6.4.5.
    fail(.policyViolation, output: &output)
    return .ended(.loginRefused)
  }
}
