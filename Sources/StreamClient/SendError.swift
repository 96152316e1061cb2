/// Why a message was not acked.
public struct SendError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of failure.
  ///
  /// May grow; compare with the constants.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    private enum Kind: String {
      case nacked, invalidMessage, duplicateID, ackOverdue, deadline, streamLost, cancelled, closed
    }
    private let kind: Kind

    /// The server refused it; ``SendError/nackCode`` says why.
    public static let nacked = Code(kind: .nacked)
    /// It broke a rule of the protocol and was not sent; ``SendError/field`` says where.
    public static let invalidMessage = Code(kind: .invalidMessage)
    /// A message with the same id has not ended yet.
    public static let duplicateID = Code(kind: .duplicateID)
    /// It was written and not answered in time.
    ///
    /// It may have been delivered.
    public static let ackOverdue = Code(kind: .ackOverdue)
    /// The time for all tries ran out.
    ///
    /// It may have been delivered when ``SendError/attempts`` is over 0.
    public static let deadline = Code(kind: .deadline)
    /// Its stream was lost, and the retry policy does not resend.
    ///
    /// It may have been delivered.
    public static let streamLost = Code(kind: .streamLost)
    /// The task was cancelled.
    ///
    /// It may have been delivered when ``SendError/attempts`` is over 0.
    public static let cancelled = Code(kind: .cancelled)
    /// The client is closed, or gave up connecting.
    public static let closed = Code(kind: .closed)

    /// The code's name.
    public var description: String { kind.rawValue }
  }

  /// The kind of failure.
  public var code: Code
  /// The message's id; nil when it had none yet.
  public var messageID: String?
  /// The server's code, `DEVICE_UNREGISTERED` for instance, as it was written; of the last nack for
  /// ``Code/deadline``.
  ///
  /// Over HTTP the name that the stream protocol has for the same condition.
  public var nackCode: String?
  /// The field at fault of an invalid message.
  public var field: String?
  /// For people: the server's description, or the broken rule.
  ///
  /// Holds no payload.
  public var detail: String
  /// How often the message was written.
  public var attempts: Int

  /// Makes an error; test doubles do.
  public init(
    code: Code, messageID: String? = nil, nackCode: String? = nil, field: String? = nil,
    detail: String = "", attempts: Int = 0
  ) {
    self.code = code
    self.messageID = messageID
    self.nackCode = nackCode
    self.field = field
    self.detail = detail
    self.attempts = attempts
  }

  /// Whether the registration token is of no use any more: forget it.
  public var shouldDropToken: Bool {
    switch nackCode {
    case "BAD_REGISTRATION", "DEVICE_UNREGISTERED", "SENDER_ID_MISMATCH": true
    default: false
    }
  }

  /// One line for logs.
  public var description: String {
    var text = code.description
    if let nackCode { text += " \(nackCode)" }
    if let field { text += " (\(field))" }
    if !detail.isEmpty { text += ": \(detail)" }
    return text
  }
}

/// The server's word that it took charge of a message: it is durable, or its device has it.
public struct Ack: Sendable, Hashable {
  /// The message's id.
  public var messageID: String
  /// The token to use from now on, when another one has replaced the target.
  public var canonicalRegistrationID: String?
  /// How often the message was written.
  public var attempts: Int
  /// From the hand-over to the ack.
  public var latency: Duration

  /// Makes an ack; test doubles do.
  public init(
    messageID: String, canonicalRegistrationID: String? = nil, attempts: Int = 1, latency: Duration = .zero
  ) {
    self.messageID = messageID
    self.canonicalRegistrationID = canonicalRegistrationID
    self.attempts = attempts
    self.latency = latency
  }
}
