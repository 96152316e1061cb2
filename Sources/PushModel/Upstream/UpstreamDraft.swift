package import JSONCore

/// Why an upstream message of a device is not taken: the whole list.
package enum UpstreamError: String, Error, Sendable, Hashable, CaseIterable {
  case invalidJSON = "INVALID_JSON"
  /// The registration belongs to another sender than `to` names.
  case senderIDMismatch = "SENDER_ID_MISMATCH"
  case messageTooBig = "MESSAGE_TOO_BIG"
  /// ``Limits/upstreamPendingPerDeviceMax`` are not acked yet.
  case tooManyMessages = "TOO_MANY_MESSAGES"
  /// Its time ran out before an app server took it.
  case ttlExceeded = "TTL_EXCEEDED"
  case serviceUnavailable = "SERVICE_UNAVAILABLE"
}

/// A valid upstream message of a device, as places in the JSON text it was read from.
package struct UpstreamDraft: Sendable {
  package var messageID: JSONString
  /// The sender id of `to`; 0 for a message to a group.
  package var sender: SenderID
  /// The device group of `to`: the message goes to its other members, no app server sees it.
  package var group: JSONString?
  /// Nil when left out: right while the device has one registration.
  ///
  /// Not checked to be well formed.
  package var token: JSONString?
  /// Seconds; 0 means only to an app server that is connected now.
  package var timeToLive: Int
  /// The whole object, braces included.
  package var data: JSONRange?
  /// A value in `data` is no string and is turned into one for the app server.
  package var convertsData: Bool
  /// What counts towards ``Limits/payloadBytesMax``.
  package var payloadBytes: Int

  package init(
    messageID: JSONString, sender: SenderID, group: JSONString? = nil, token: JSONString? = nil,
    timeToLive: Int, data: JSONRange? = nil, convertsData: Bool, payloadBytes: Int
  ) {
    self.messageID = messageID
    self.sender = sender
    self.group = group
    self.token = token
    self.timeToLive = timeToLive
    self.data = data
    self.convertsData = convertsData
    self.payloadBytes = payloadBytes
  }
}

/// What the JSON text of one stanza from a device comes to.
package enum DevicePayload: Sendable {
  /// The device took charge of a message. The id is the server's own: 32 hex digits, if it is genuine.
  case ack(messageID: JSONString)
  case upstream(UpstreamDraft)
  /// There is no message id to tie an outcome to: answer with a stanza error of this text.
  case stanzaError(text: String)
  case refused(UpstreamError, description: String, messageID: JSONString)
}
