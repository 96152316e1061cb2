import Bytes
import Seams
import Testing
import XMLCore
import XMPPCore

let openTag =
  "<stream:stream to=\"fcm-xmpp.googleapis.com\" version=\"1.0\" xmlns=\"jabber:client\""
  + " xmlns:stream=\"http://etherx.jabber.org/streams\">"
/// What the server answers to ``openTag`` with the tests' randomness.
let serverTag =
  "<stream:stream from=\"fcm-xmpp.googleapis.com\" id=\"7A1F00C29B3D4E58\" version=\"1.0\""
  + " xmlns:stream=\"http://etherx.jabber.org/streams\" xmlns=\"jabber:client\">"
let loginFeatures =
  "<stream:features><mechanisms xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"><mechanism>PLAIN</mechanism>"
  + "</mechanisms></stream:features>"
let bindFeatures =
  "<stream:features><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"/>"
  + "<session xmlns=\"urn:ietf:params:xml:ns:xmpp-session\"><optional/></session></stream:features>"
let success = "<success xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"/>"
let endTag = "</stream:stream>"
let address = JID(local: "123456789", domain: "gcm.googleapis.com", resource: "worker9B3D4E58")

func failure(_ condition: String) -> String {
  "<failure xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"><\(condition)/></failure>"
}
func streamError(_ condition: String) -> String {
  "<stream:error><\(condition) xmlns=\"urn:ietf:params:xml:ns:xmpp-streams\"/></stream:error>" + endTag
}
func auth(_ authzid: String, _ authcid: String, _ password: String = "key") -> String {
  auth(Array((authzid + "\0" + authcid + "\0" + password).utf8))
}
func auth(_ message: [UInt8]) -> String {
  "<auth mechanism=\"PLAIN\" xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\">\(Base64.encode(message))</auth>"
}
func bind(_ resource: String) -> String {
  "<iq type=\"set\" id=\"b1\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"><resource>\(resource)</resource></bind></iq>"
}
func gcm(_ json: String, id: String = "m1") -> String {
  "<message id=\"\(id)\"><gcm xmlns=\"google:mobile:data\">\(json)</gcm></message>"
}

/// A server's stream with a driver that keeps everything.
final class Server {
  let stream: ServerStream
  var output = ByteWriter()
  var scratch: [UInt8] = []
  var now = Moment(ns: 0)
  var events: [ServerEvent] = []
  /// Texts of the messages among the events, with their stanza ids.
  var messages: [String] = []
  /// What the driver says to credentials; nil keeps it waiting.
  var verdict: ((PlainCredentials) -> Bool)? = { $0.password == "key" }
  /// Largest window it grants; nil offers none.
  var windowMax: Int?

  init(limits: StreamLimits = StreamLimits()) {
    stream = ServerStream(limits: limits, now: now) { 0x7A1F_00C2_9B3D_4E58 }
  }

  /// Feeds bytes, answers what is asked, and gives back what was written.
  @discardableResult
  func feed(_ bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { chunk in
      var offset = 0
      while true {
        if let event = stream.next(chunk, &offset, scratch: &scratch, output: &output, now: now) {
          take(event)
        } else if offset == chunk.count || stream.state == .awaitingVerdict {
          break
        }
      }
    }
    return written()
  }

  @discardableResult
  func feed(_ text: String) -> String { feed(Array(text.utf8)) }

  func take(_ event: ServerEvent) {
    events.append(event)
    switch event {
    case .authenticate(let credentials):
      guard let verdict else { return }
      if verdict(credentials) {
        stream.authenticated(
          local: credentials.identity, windowMax: windowMax, output: &output, now: now)
      } else if let end = stream.refused(output: &output, now: now) {
        events.append(end)
      }
    case .message(let head):
      let id = head.id.map { String(decoding: scratch[$0], as: UTF8.self) } ?? "-"
      messages.append(id + " " + String(decoding: scratch[head.text], as: UTF8.self))
    case .bound, .peerClosing, .ended:
      break
    }
  }

  func written() -> String { String(decoding: output.take(), as: UTF8.self) }

  /// Moves time and does what is due.
  @discardableResult
  func advance(_ duration: Duration) -> String {
    now = now + duration
    if let event = stream.deadlineReached(now: now, output: &output) { take(event) }
    return written()
  }

  /// A stream in the given state, its output dropped.
  static func inState(_ state: ServerStream.State, limits: StreamLimits = StreamLimits()) -> Server {
    let server = Server(limits: limits)
    if state == .awaitingHeader { return server }
    server.feed(openTag)
    switch state {
    case .awaitingHeader, .awaitingLogin: break
    case .awaitingResponse: server.feed("<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
    case .awaitingVerdict:
      server.verdict = nil
      server.feed(auth("", "123456789"))
    case .awaitingSecondHeader: server.feed(auth("", "123456789"))
    case .awaitingBind: server.feed(auth("", "123456789") + openTag)
    case .bound: server.feed(auth("", "123456789") + openTag + bind("worker"))
    case .awaitingClose: server.feed(auth("", "123456789") + openTag + bind("worker") + endTag)
    case .ended:
      server.stream.close(output: &server.output)
      _ = server.written()
    }
    server.events = []
    return server
  }
}

/// A client's stream with a driver that keeps everything.
final class Client {
  let stream: ClientStream
  var output = ByteWriter()
  var scratch: [UInt8] = []
  var now = Moment(ns: 0)
  var events: [ClientEvent] = []
  var messages: [String] = []

  init(
    password: String = "key", resource: String? = "worker", window: Int? = nil, isPipelined: Bool = false,
    limits: StreamLimits = StreamLimits()
  ) {
    var login = ClientLogin(
      host: "fcm-xmpp.googleapis.com",
      credentials: PlainCredentials(authcid: "123456789@fcm.googleapis.com", password: password),
      resource: resource, window: window)
    login.isPipelined = isPipelined
    stream = ClientStream(login: login, limits: limits, now: now)
  }

  @discardableResult
  func feed(_ bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { chunk in
      var offset = 0
      while let event = stream.next(chunk, &offset, scratch: &scratch, output: &output, now: now) {
        take(event)
      }
    }
    return written()
  }

  @discardableResult
  func feed(_ text: String) -> String { feed(Array(text.utf8)) }

  func take(_ event: ClientEvent) {
    events.append(event)
    if case .message(let head) = event {
      messages.append(String(decoding: scratch[head.text], as: UTF8.self))
    }
  }

  func open() -> String {
    stream.open(output: &output, now: now)
    return written()
  }

  func close() -> String {
    if let event = stream.close(output: &output, now: now) { take(event) }
    return written()
  }

  func written() -> String { String(decoding: output.take(), as: UTF8.self) }

  @discardableResult
  func advance(_ duration: Duration) -> String {
    now = now + duration
    if let event = stream.deadlineReached(now: now, output: &output) { take(event) }
    return written()
  }

  static let bound =
    "<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>\(address)</jid></bind></iq>"
  static let steps: [(ClientStream.State, String)] = [
    (.awaitingHeader, serverTag), (.awaitingFeatures, loginFeatures), (.awaitingSuccess, success),
    (.awaitingSecondHeader, serverTag),
    (
      .awaitingSecondFeatures,
      "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
        + "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'/></stream:features>"
    ),
    (.awaitingBinding, bound), (.awaitingSession, "<iq type='result' id='session'/>"),
  ]

  /// A stream in the given state, its output dropped.
  static func inState(_ state: ClientStream.State) -> Client {
    let client = Client()
    if state == .idle { return client }
    _ = client.open()
    for (waiting, answer) in steps where client.stream.state != state && client.stream.state == waiting {
      client.feed(answer)
    }
    if state == .awaitingEnd || state == .ended { _ = client.close() }
    if state == .ended { client.feed(endTag) }
    client.events = []
    return client
  }
}
