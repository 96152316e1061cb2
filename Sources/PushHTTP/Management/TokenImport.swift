import JSONCore

/// `batchImport`: registrations for device tokens of APNs.
package struct TokenImport: Hashable, Sendable {
  package static let tokensMax = 100

  package var application: String
  package var isSandbox: Bool
  package var tokens: [String]

  package init(_ body: [UInt8]) throws(ManagementFault) {
    guard let value = try? JSONValue(parsing: body, depthMax: 8), value.members != nil else {
      throw ManagementFault("InvalidJson")
    }
    guard let application = value["application"]?.string, (1...255).contains(application.utf8.count),
      application.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "\"") })
    else { throw ManagementFault("MissingApplication") }
    self.application = application
    isSandbox = value["sandbox"]?.bool ?? false
    guard let list = value["apns_tokens"]?.array, !list.isEmpty else {
      throw ManagementFault("MissingApnsToken")
    }
    guard list.count <= Self.tokensMax else {
      throw ManagementFault("TooManyApnsTokens: at most \(Self.tokensMax) are allowed")
    }
    tokens = list.compactMap(\.string)
    guard tokens.count == list.count else { throw ManagementFault("InvalidApnsToken") }
  }

  /// Hex digits in pairs, 32 bytes or more as Apple's tokens are.
  package static func isWellFormed(_ token: String) -> Bool {
    (64...200).contains(token.utf8.count) && token.utf8.count.isMultiple(of: 2)
      && token.utf8.allSatisfy { ($0 >= 48 && $0 <= 57) || ($0 | 0x20 >= 97 && $0 | 0x20 <= 102) }
  }
}
