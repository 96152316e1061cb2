/// The status code of a close frame: RFC 6455 §7.4.
package struct CloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  package let rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  package static let normal = CloseCode(rawValue: 1000)
  /// The server stops, or the page is left.
  package static let goingAway = CloseCode(rawValue: 1001)
  package static let protocolError = CloseCode(rawValue: 1002)
  /// A kind of data that is not taken, such as binary where text is spoken.
  package static let unsupportedData = CloseCode(rawValue: 1003)
  /// Text that is no UTF-8.
  package static let invalidData = CloseCode(rawValue: 1007)
  package static let policyViolation = CloseCode(rawValue: 1008)
  package static let messageTooBig = CloseCode(rawValue: 1009)
  package static let internalError = CloseCode(rawValue: 1011)

  /// Whether a close frame may carry it.
  ///
  /// 1004 is reserved, 1005, 1006 and 1015 are for reports; below 3000 only registered codes, and from 5000 on none.
  package var maySend: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }

  package var description: String { "\(rawValue)" }
}

/// What is wrong with the bytes of a peer; each ends the connection, with the code that says so.
package enum WebSocketFault: Error, Hashable, Sendable, CaseIterable {
  /// RSV1 to RSV3 without an extension that gives them a meaning: RFC 6455 §5.2.
  case reservedBit
  /// An opcode without a meaning: §5.2.
  case unknownOpcode
  /// A control frame in fragments, or of more than 125 bytes: §5.5.
  case badControlFrame
  /// A client's frame without mask, or a server's with one: §5.1.
  case badMasking
  /// A length that is not written in the fewest bytes, or has its top bit set: §5.2.
  case badLength
  /// A continuation of nothing, or a new message within another: §5.4.
  case badFragment
  /// A close frame of one byte, or with a code that must not be sent: §5.5.1 and 7.4.
  case badClose
  /// Text, or the reason of a close, that is no UTF-8: §8.1.
  case badText
  case messageTooBig
  case tooManyFragments

  /// What the peer is told.
  package var code: CloseCode {
    switch self {
    case .reservedBit, .unknownOpcode, .badControlFrame, .badMasking, .badLength, .badFragment, .badClose:
      .protocolError
    case .badText: .invalidData
    case .messageTooBig: .messageTooBig
    case .tooManyFragments: .policyViolation
    }
  }
}
