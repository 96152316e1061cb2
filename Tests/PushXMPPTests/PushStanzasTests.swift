import Bytes
import Foundation
import FoundationXML
import JSONCore
import PushModel
import PushXMPP
import Seams
import Testing

private let stanzas = PushStanzas()

private func written(_ body: (inout ByteWriter) -> Void) -> String {
  var writer = ByteWriter()
  body(&writer)
  return String(decoding: writer.bytes, as: UTF8.self)
}

private func lent<Result>(_ text: String, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
  -> Result
{
  try Array(text.utf8).withUnsafeBytes(body)
}

/// One stanza as an independent XML reader sees it.
private final class Seen: NSObject, XMLParserDelegate {
  var elements: [String] = []
  var text: [String: String] = [:]
  var attributes: [String: [String: String]] = [:]

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
    attributes given: [String: String] = [:]
  ) {
    elements.append("{\(namespaceURI ?? "")}\(name)")
    attributes[name] = given
  }

  func parser(_ parser: XMLParser, foundCharacters more: String) {
    let name = elements.last.map { String($0.drop { $0 != "}" }.dropFirst()) } ?? ""
    text[name, default: ""] += more
  }

  init?(_ stanza: String) {
    super.init()
    let parser = XMLParser(data: Data("<stream xmlns='jabber:client'>\(stanza)</stream>".utf8))
    parser.shouldProcessNamespaces = true
    parser.delegate = self
    guard parser.parse() else { return nil }
  }
}

@Suite struct PushStanzasTests {
  @Test func anAckHasNoTypeAndRepeatsTheIDsAsTheyCame() {
    let ack = lent(#"\/topics\/<a>"#) { from in
      lent(#"m\"&1"#) { id in written { stanzas.appendAck(from: from, messageID: id, to: &$0) } }
    }
    #expect(
      ack
        == #"<message><gcm xmlns="google:mobile:data">{"from":"\/topics\/&lt;a&gt;","message_id":"m\"&amp;1","message_type":"ack"}</gcm></message>"#
    )
  }

  @Test func anAckMayNameTheCanonicalToken() {
    let ack = lent("old") { from in
      lent("m") { id in
        written { stanzas.appendAck(from: from, messageID: id, registrationID: "new", to: &$0) }
      }
    }
    #expect(
      ack
        == #"<message><gcm xmlns="google:mobile:data">{"from":"old","message_id":"m","registration_id":"new","message_type":"ack"}</gcm></message>"#
    )
  }

  @Test func aNackAlwaysHasADescription() {
    let nack = lent("gone:APA91b") { from in
      lent("m-1002") { id in
        written {
          stanzas.appendNack(from: from, messageID: id, code: .deviceUnregistered, description: "", to: &$0)
        }
      }
    }
    #expect(
      nack
        == #"<message><gcm xmlns="google:mobile:data">{"from":"gone:APA91b","message_id":"m-1002","message_type":"nack","error":"DEVICE_UNREGISTERED","error_description":""}</gcm></message>"#
    )
  }

  @Test func aRefusalBecomesANackThatTheClientReads() throws {
    let text = #"{"message_id":"m<1>","to":"a\"\u001a</gcm>"}"#
    var reader = DownstreamReader(limits: Limits())
    let stanza = lent(text) { bytes -> String in
      guard case .nack(let refusal, let reply) = reader.read(bytes) else { return "" }
      return written { stanzas.appendNack(refusal, reply, of: bytes, to: &$0) }
    }
    let seen = try #require(Seen(stanza))
    #expect(seen.elements == ["{jabber:client}stream", "{jabber:client}message", "{google:mobile:data}gcm"])
    #expect(seen.attributes["message"] == [:])
    var payloads = ServerPayloadReader()
    let payload = try lent(seen.text["gcm"] ?? "") { try payloads.read($0) }
    #expect(
      payload
        == .nack(
          ServerPayload.Nack(
            messageID: "m<1>", from: "a\"\u{1A}</gcm>", error: "BAD_REGISTRATION",
            description: "Invalid token on 'to' field: a\"\u{1A}</gcm>")))
  }

  @Test func aRefusalWithoutATargetHasAnEmptyFrom() {
    var reader = DownstreamReader(limits: Limits())
    let stanza = lent(#"{"message_id":"m"}"#) { bytes -> String in
      guard case .nack(let refusal, let reply) = reader.read(bytes) else { return "" }
      return written { stanzas.appendNack(refusal, reply, of: bytes, to: &$0) }
    }
    #expect(stanza.contains(#"{"from":"","message_id":"m","message_type":"nack""#))
  }

  @Test func drainingIsWrittenInBothSpellings() {
    let prefixed = written { stanzas.appendDraining(to: &$0) }
    #expect(
      prefixed
        == #"<message><data:gcm xmlns:data="google:mobile:data">{"message_type":"control","control_type":"CONNECTION_DRAINING"}</data:gcm></message>"#
    )
    let plain = written { stanzas.appendDraining(prefixed: false, to: &$0) }
    for stanza in [prefixed, plain] {
      #expect(Seen(stanza)?.elements.last == "{google:mobile:data}gcm")
    }
  }

  @Test func upstreamAndReceiptsAreOfTypeNormal() {
    let stanza = lent(#"{"data":{"t":"<test>test & \"q\" 'a'"}}"#) { json in
      written { stanzas.appendToAppServer(json, sender: SenderID(123_456_789), to: &$0) }
    }
    #expect(
      stanza.hasPrefix(
        #"<message to="123456789@gcm.googleapis.com" from="devices@gcm.googleapis.com" type="normal"><gcm xmlns="google:mobile:data">"#
      ))
    #expect(Seen(stanza)?.text["gcm"] == #"{"data":{"t":"<test>test & \"q\" 'a'"}}"#)
  }

  @Test func aStanzaErrorEchoesIDAndContent() {
    let stanza = lent(#"{"to":"a<b"}"#) { content in
      written {
        stanzas.appendStanzaError(
          id: "7\"7", jid: "1@gcm.googleapis.com/worker5C01A7F2", content: content,
          text: "InvalidJson: X : <y>\n",
          to: &$0)
      }
    }
    #expect(
      stanza
        == #"<message id="7&quot;7" type="error" to="1@gcm.googleapis.com/worker5C01A7F2"><gcm xmlns="google:mobile:data">{"to":"a&lt;b"}</gcm><error code="400" type="modify"><bad-request xmlns="urn:ietf:params:xml:ns:xmpp-stanzas"/><text xmlns="urn:ietf:params:xml:ns:xmpp-stanzas">InvalidJson: X : &lt;y&gt;"#
        + "\n</text></error></message>")
    let without = lent("x") { content in
      written { stanzas.appendStanzaError(id: nil, jid: "j", content: content, text: "t", to: &$0) }
    }
    #expect(without.hasPrefix("<message type=\"error\""))
  }

  @Test func eachStanzaOfAWebSocketSaysItsNamespace() {
    let web = PushStanzas(framing: .webSocket)
    let all = lent("{}") { json in
      [
        written { web.append(json, to: &$0) }, written { web.append(json, id: "i", to: &$0) },
        written { web.appendAck(from: json, messageID: json, to: &$0) },
        written { web.appendDraining(to: &$0) },
        written { web.appendToAppServer(json, sender: SenderID(1), to: &$0) },
        written { web.appendStanzaError(id: nil, jid: "j", content: json, text: "t", to: &$0) },
        written { web.appendClientAck(to: "t", messageID: "m", to: &$0) },
        written { web.appendDeviceAck(messageID: "m", to: &$0) },
      ]
    }
    for stanza in all { #expect(stanza.hasPrefix("<message xmlns=\"jabber:client\"")) }
  }

  @Test func clientsAcksAreReadByTheServer() throws {
    let app = written { stanzas.appendClientAck(to: "gcm.googleapis.com", messageID: "dr2:<m\"1>", to: &$0) }
    var reader = DownstreamReader(limits: Limits())
    let content = try #require(Seen(app)?.text["gcm"])
    lent(content) { text in
      guard case .ack(let ack) = reader.read(text) else {
        Issue.record("no ack")
        return
      }
      #expect(
        ack.messageID.string(in: text) == "dr2:<m\"1>" && ack.to.string(in: text) == "gcm.googleapis.com")
    }
    let device = written { stanzas.appendDeviceAck(messageID: "00ff", to: &$0) }
    #expect(device.contains(#"{"message_type":"ack","message_id":"00ff"}"#))
  }

  @Test func fourThousandQuotesFitAStanza() throws {
    let token = "abcdefghijklmnopqrstuv:APA91b" + String(repeating: "Z", count: 43)
    let quotes = String(repeating: "\"", count: 4090)
    let json = try DownstreamMessage(.to(token), messageID: "m", data: ["b": quotes]).encoded()
    let stanza = json.withUnsafeBytes { json in written { stanzas.append(json, id: "m", to: &$0) } }
    #expect(stanza.utf8.count < Limits().stanzaBytesMax)
    let seen = try #require(Seen(stanza))
    #expect(try JSONValue(parsing: seen.text["gcm"] ?? "")["data"]?["b"]?.string == quotes)
  }

  @Test func whatXMLMustNotHoldIsEscapedInJSON() throws {
    // Each at every place of a word, so that the eight-byte steps see it in each lane.
    for special in ["\u{FFFE}", "\u{FFFF}", "&", "<", ">", "\r", "é", "\u{FFFD}", "\u{EFBF}", "🌍", "\u{1A}"] {
      for pad in 0..<17 {
        let value = String(repeating: "a", count: pad) + special + special + "b"
        let json = JSONValue.object([.init("k", .string(value))]).bytes
        let stanza = json.withUnsafeBytes { json in written { stanzas.append(json, to: &$0) } }
        let seen = try #require(Seen(stanza), "\(special) after \(pad)")
        #expect(try JSONValue(parsing: seen.text["gcm"] ?? "")["k"]?.string == value)
      }
    }
  }

  @Test func aStanzasIDHoldsNoControlCharacter() {
    let stanza = lent("{}") { json in written { stanzas.append(json, id: "a\u{1}\t<>&\"'\u{FFFE}é", to: &$0) }
    }
    #expect(Seen(stanza)?.attributes["message"]?["id"] == "a\u{FFFD}\t<>&\"'\u{FFFD}é")
  }

  @Test func randomTextSurvivesTheWay() throws {
    var chance = SeededChance(seed: 4)
    let pieces = [
      "<", ">", "&", "\"", "'", "\\", "\n", "\r\n", "\u{0}", "]]>", "é", "語", "🌍", "\u{FFFF}", "text",
      "\u{85}", "\u{2028}",
    ]
    for _ in 0..<500 {
      let value = (0..<Int.random(in: 0...30, using: &chance)).map { _ in
        pieces[Int.random(in: pieces.indices, using: &chance)]
      }.joined()
      let json = JSONValue.object([.init("k", .string(value))]).bytes
      let stanza = json.withUnsafeBytes { json in written { stanzas.append(json, to: &$0) } }
      let seen = try #require(Seen(stanza))
      let got = try JSONValue(parsing: seen.text["gcm"] ?? "")["k"]?.string
      #expect(got.map { Array($0.utf8) } == Array(value.utf8))
    }
  }
}
