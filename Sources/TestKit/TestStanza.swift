import JSONCore
import XMLCore

/// A first-level element of a stream, read.
public struct TestStanza: Sendable {
  /// As it came.
  public let text: String
  private let element: XMLElement

  init(_ bytes: UnsafeRawBufferPointer) throws {
    text = String(decoding: bytes, as: UTF8.self)
    element = try ElementReader.read(
      bytes, limits: XMLLimits(bytesMax: 1 << 20, depthMax: 32, attributesMax: 64))
  }

  /// Local name: `message`, `iq`, `features`, `error`.
  public var name: String { element.name }

  /// Value of an attribute without namespace.
  public subscript(_ attribute: String) -> String? { element.attribute(attribute) }

  /// Local names of the child elements.
  public var children: [String] { element.elements.map(\.name) }

  /// The JSON of a message's `gcm`; nil when there is none, or it is not JSON.
  public var payload: TestPayload? {
    element.child("gcm", "google:mobile:data").flatMap { TestPayload($0.text) }
  }

  /// The condition and the code of a stanza's error.
  public var error: (condition: String, code: String?)? {
    guard let error = element.elements.first(where: { $0.name == "error" }),
      let condition = error.elements.first(where: { $0.name != "text" })
    else { return nil }
    return (condition.name, error.attribute("code"))
  }

  /// The address that an answer to a bind request holds.
  var boundAddress: String? {
    let bind = "urn:ietf:params:xml:ns:xmpp-bind"
    return element.child("bind", bind)?.child("jid", bind)?.text
  }
}

/// A JSON object of the push protocol.
public struct TestPayload: Sendable, CustomStringConvertible {
  /// As it came, XML references decoded.
  public let text: String
  private let value: JSONValue

  init?(_ text: String) {
    guard let value = try? JSONValue(parsing: text) else { return nil }
    self.text = text
    self.value = value
  }

  /// A string member; several names go into objects inside.
  public subscript(_ path: String...) -> String? {
    var found: JSONValue? = value
    for name in path { found = found?[name] }
    return found?.string
  }

  /// The text.
  public var description: String { text }
}
