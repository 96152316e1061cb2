package import XMLCore

/// What the opening side of a stream wants its driver to know.
package enum ClientEvent: Hashable, Sendable {
  /// Logged in and bound: messages may be sent.
  case ready(JID)
  /// A message with a `gcm` element. Ranges point into the scratch buffer, until it is next used.
  case message(MessageHead)
  /// A message came back as a stanza error.
  case refused(RefusedMessage)
  /// Over: flush the output and close the connection. Comes once.
  case ended(ClientEnd)
}

/// A stanza error as a client reads it.
package struct RefusedMessage: Hashable, Sendable {
  /// The stanza id the message was sent with.
  package var id: String?
  /// Legacy number, such as 400.
  package var code: String?
  /// Condition element's name, such as `bad-request`.
  package var condition: String
  /// For people; without the line feed it is sent with.
  package var text: String
  /// The message's own JSON, when it was echoed.
  package var json: String?

  package init(id: String?, code: String?, condition: String, text: String, json: String?) {
    self.id = id
    self.code = code
    self.condition = condition
    self.text = text
    self.json = json
  }
}

/// Why the opening side's stream is over.
package enum ClientEnd: Hashable, Sendable {
  /// An end tag came after ``ClientEvent/ready(_:)``, or as the answer to ours.
  case closed
  case failed(ClientFault)
}

/// What went wrong with a stream, as the opening side sees it.
package enum ClientFault: Error, Hashable, Sendable {
  /// Wrong sender id or key; `notAuthorized` as a rule.
  case loginRefused(SASLFailure)
  /// The server offers no PLAIN.
  case mechanismMissing
  /// The server offers no resource binding, or refused it with that condition.
  case bindingRefused(String)
  /// The server sent a stream error: its name and its text.
  case streamError(String, text: String?)
  /// The server's XML is at fault; it was told so.
  case xml(XMLFault)
  /// The server sent something else than what was awaited.
  case unexpected(ClientStream.State)
  /// The awaited did not come in time.
  case overdue(ClientStream.State)
  /// The server's end tag came during login.
  case closedEarly(ClientStream.State)
  /// Not a byte from the server for too long.
  case silent
}

/// Who logs in, and where.
package struct ClientLogin: Hashable, Sendable {
  /// `to` of the stream header.
  package var host: String
  package var credentials: PlainCredentials
  /// The server appends to it; nil lets it choose.
  package var resource: String?
  /// Unanswered messages that the client would like to have on the stream; asked for where the server offers it.
  package var window: Int?
  /// Says everything up to the binding at once instead of awaiting the server's answers, which saves three round trips.
  ///
  /// For servers that are known to offer PLAIN and binding (XEP-0305). Without effect when a window is asked for, which
  /// depends on what the server offers.
  package var isPipelined = false

  package init(host: String, credentials: PlainCredentials, resource: String? = nil, window: Int? = nil) {
    self.host = host
    self.credentials = credentials
    self.resource = resource
    self.window = window
  }
}
