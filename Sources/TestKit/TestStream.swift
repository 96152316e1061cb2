import Foundation
import JSONCore
import Synchronization
import XMLCore

/// A raw XMPP connection for tests: sends any text, hands out what comes, one item at a time.
///
/// ```swift
/// let stream = try await server.address.connectAppServer()
/// stream.send(#"<message><gcm xmlns="google:mobile:data">{"to":"no-token","message_id":"m1"}</gcm></message>"#)
/// let answer = try await stream.nextPayload()
/// #expect(answer["error"] == "BAD_REGISTRATION")
/// ```
///
/// Every wait has a deadline. Reading is for one task at a time.
public final class TestStream: Sendable {
  /// What a server sends.
  public enum Item: Sendable, CustomStringConvertible {
    /// The start tag of a stream.
    case header(String)
    /// A whole first-level element.
    case stanza(TestStanza)
    /// `</stream:stream>`.
    case endTag
    /// The connection is over; the text says how.
    case closed(String)

    /// As it came.
    public var description: String {
      switch self {
      case .header(let text): text
      case .stanza(let stanza): stanza.text
      case .endTag: "</stream:stream>"
      case .closed(let reason): "(closed: \(reason))"
      }
    }
  }

  private let line: TestLine
  private let framer = Mutex(Reader())

  private init(_ line: TestLine) { self.line = line }

  /// Opens a connection to the XMPP listener on this machine; nothing is sent.
  ///
  /// - Parameters:
  ///   - port: Of the listener.
  ///   - authority: PEM file of the authority that signed the server's certificate.
  ///   - time: For the handshake.
  public static func connect(
    port: Int, authority: String, within time: Duration = .seconds(15)
  ) async throws -> TestStream {
    TestStream(
      try await TestLine.connect(port: port, authority: authority, protocols: ["xmpp-client"], within: time))
  }

  // MARK: Sending

  /// Sends text in one write.
  public func send(_ text: String) { line.send(Array(text.utf8)) }

  /// Sends bytes in one write.
  public func send(_ bytes: [UInt8]) { line.send(bytes) }

  /// Sends a payload in a `message` stanza; the text may be anything and is escaped.
  public func sendPayload(_ json: String, id: String? = nil) {
    let head = id.map { "<message id=\"\($0)\">" } ?? "<message>"
    send("\(head)<gcm xmlns=\"google:mobile:data\">\(json.escapedForXML)</gcm></message>")
  }

  /// Sends a data message to a token.
  public func sendMessage(to token: String, id: String, data: [String: String] = [:]) {
    let members = data.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) }
    let value: JSONValue = [
      "to": .string(token), "message_id": .string(id), "data": .object(members),
    ]
    sendPayload(value.text, id: id)
  }

  /// Acks an upstream message or receipt.
  public func acknowledge(_ payload: TestPayload) {
    let value: JSONValue = [
      "to": .string(payload["from"] ?? ""), "message_id": .string(payload["message_id"] ?? ""),
      "message_type": "ack",
    ]
    sendPayload(value.text)
  }

  /// Acks a message as its device.
  public func acknowledgeDelivery(_ payload: TestPayload) {
    let value: JSONValue = ["message_type": "ack", "message_id": .string(payload["message_id"] ?? "")]
    sendPayload(value.text)
  }

  /// Stops taking bytes from the network, as a peer that hangs.
  public func pauseReading() { line.pauseReading() }

  /// Takes bytes again.
  public func resumeReading() { line.resumeReading() }

  /// Closes the connection without an end tag, but in order.
  public func close() { line.close() }

  /// Cuts the connection off with a reset.
  public func abort() { line.abort() }

  // MARK: Receiving

  /// The next thing the server sent, keepalive spaces left out.
  ///
  /// - Throws: ``TestTimeout`` when nothing comes, ``TestStreamFailure`` when it is no XML.
  public func next(within time: Duration = .seconds(15)) async throws -> Item {
    while true {
      if let item = try framer.withLock({ try $0.next() }) { return item }
      let (bytes, end) = try await line.inbox.wait(for: "something from the server", within: time) { inbox in
        guard !inbox.bytes.isEmpty || inbox.end != nil else { return nil as ([UInt8], String?)? }
        defer { inbox.bytes = [] }
        return (inbox.bytes, inbox.end)
      }
      framer.withLock { $0.take(bytes) }
      if bytes.isEmpty, let end { return .closed(end) }
    }
  }

  /// The next item, which must be a stanza.
  public func nextStanza(within time: Duration = .seconds(15)) async throws -> TestStanza {
    let item = try await next(within: time)
    guard case .stanza(let stanza) = item else { throw TestStreamFailure(wanted: "a stanza", found: item) }
    return stanza
  }

  /// The payload of the next item, which must be a `message` with JSON in its `gcm`.
  public func nextPayload(within time: Duration = .seconds(15)) async throws -> TestPayload {
    let item = try await next(within: time)
    guard case .stanza(let stanza) = item, let payload = stanza.payload else {
      throw TestStreamFailure(wanted: "a payload", found: item)
    }
    return payload
  }

  /// The server ends the stream: an end tag, then an orderly close, and nothing else before them.
  public func waitForClose(within time: Duration = .seconds(15)) async throws {
    let tag = try await next(within: time)
    guard case .endTag = tag else { throw TestStreamFailure(wanted: "</stream:stream>", found: tag) }
    let end = try await next(within: time)
    guard case .closed(let reason) = end, reason == "closed by the peer" else {
      throw TestStreamFailure(wanted: "an orderly close", found: end)
    }
  }

  /// The server ends the stream with an error of this condition.
  public func waitForStreamError(_ condition: String, within time: Duration = .seconds(15)) async throws {
    let item = try await next(within: time)
    guard case .stanza(let stanza) = item, stanza.name == "error", stanza.children.contains(condition) else {
      throw TestStreamFailure(wanted: "the stream error \(condition)", found: item)
    }
    try await waitForClose(within: time)
  }

  // MARK: Login

  /// The start tag that clients send.
  public static let header = """
    <stream:stream to="gcm.googleapis.com" version="1.0" xmlns="jabber:client" \
    xmlns:stream="http://etherx.jabber.org/streams">
    """

  /// Goes all the way to a bound stream.
  ///
  /// - Returns: The address that was bound.
  /// - Throws: ``TestStreamFailure`` with what came instead, for instance a SASL failure.
  public func logIn(user: String, password: String, resource: String? = nil) async throws -> String {
    try await open()
    let plain = Data([0] + Array(user.utf8) + [0] + Array(password.utf8)).base64EncodedString()
    send("<auth mechanism=\"PLAIN\" xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\">\(plain)</auth>")
    let verdict = try await next()
    guard case .stanza(let stanza) = verdict, stanza.name == "success" else {
      throw TestStreamFailure(wanted: "success", found: verdict)
    }
    framer.withLock { $0.reset() }
    try await open()
    let wish = resource.map { "<resource>\($0)</resource>" } ?? ""
    send("<iq type=\"set\" id=\"bind\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\">\(wish)</bind></iq>")
    let answer = try await nextStanza()
    guard let jid = answer.boundAddress else {
      throw TestStreamFailure(wanted: "a bound address", found: .stanza(answer))
    }
    return jid
  }

  /// Sends a header; reads the answer and the features.
  public func open() async throws {
    send(Self.header)
    let header = try await next()
    guard case .header = header else { throw TestStreamFailure(wanted: "a stream header", found: header) }
    let features = try await next()
    guard case .stanza(let stanza) = features, stanza.name == "features" else {
      throw TestStreamFailure(wanted: "features", found: features)
    }
  }
}

/// Something came that a test did not want.
public struct TestStreamFailure: Error, Sendable, CustomStringConvertible {
  /// For people.
  public let description: String

  init(wanted: String, found: TestStream.Item) { description = "wanted \(wanted), found \(found)" }
  init(_ description: String) { self.description = description }
}

/// Cuts the bytes of a server into items.
private struct Reader: ~Copyable {
  private var framer = StanzaFramer(limits: XMLLimits(bytesMax: 1 << 20, depthMax: 32, attributesMax: 64))
  private var bytes: [UInt8] = []
  private var offset = 0

  mutating func take(_ more: [UInt8]) {
    bytes.removeFirst(offset)
    offset = 0
    bytes += more
  }

  /// A new stream begins with the next byte.
  mutating func reset() { framer.reset() }

  mutating func next() throws -> TestStream.Item? {
    var at = offset
    defer { offset = at }
    return try bytes.withUnsafeBytes { bytes in
      while true {
        guard let item = try framer.next(bytes, &at) else { return nil }
        switch item {
        case .whitespace: continue
        case .header(let tag, _): return .header(String(decoding: tag, as: UTF8.self))
        case .stanza(let stanza): return .stanza(try TestStanza(stanza))
        case .end: return .endTag
        }
      }
    }
  }
}

extension String {
  fileprivate var escapedForXML: String {
    replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }
}
