package import HTTPCore

/// What the header `Authorization` brings.
package enum HTTPCredential: Hashable, Sendable {
  /// `Bearer TOKEN`, or the query's `access_token`.
  case bearer(String)
  /// `key=SERVERKEY`.
  case key(String)
  case missing
  /// Something else.
  case other

  package init(_ fields: HTTPFields, query: [String: String] = [:]) {
    guard let text = fields["authorization"] else {
      self = query["access_token"].map { .bearer($0) } ?? .missing
      return
    }
    let trimmed = text.drop { $0 == " " }
    if trimmed.count > 7, trimmed.prefix(7).lowercased() == "bearer " {
      self = .bearer(String(trimmed.dropFirst(7).drop { $0 == " " }))
    } else if trimmed.count > 4, trimmed.prefix(4).lowercased() == "key=" {
      self = .key(String(trimmed.dropFirst(4)))
    } else {
      self = trimmed.isEmpty ? .missing : .other
    }
  }

  /// The instance id, group and legacy calls take a bearer only with this header.
  package static func allowsBearer(_ fields: HTTPFields) -> Bool {
    fields["access_token_auth"]?.lowercased() == "true"
  }
}

extension HTTPFields {
  /// The media type of the body in lower case, without parameters, well formed or not; nil when none is told.
  package var mediaType: String? {
    guard let text = self["content-type"] else { return nil }
    let type = text.prefix { $0 != ";" && $0 != "," }.filter { $0 != " " && $0 != "\t" }
    return type.isEmpty ? nil : type.lowercased()
  }
}
