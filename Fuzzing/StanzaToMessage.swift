// modules: Bytes Seams JSONCore XMLCore XMPPCore PushModel PushXMPP
import Bytes
import JSONCore
import PushModel
import PushXMPP
import Seams
import XMLCore

/// The whole way of a message: a stanza's bytes to what a device is sent, and back through a stanza.
///
/// First byte of an input: bit 0 tells whether the rest is the stanza as it stands or JSON that is put into one. Holds
/// that whatever is answered (message, nack, stanza error) is a stanza that reads back as JSON, with the message's id as
/// it came, and that a device's message keeps `data` and `notification` member for member.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzStanzaToMessage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = UnsafeBufferPointer(start: start, count: start == nil ? 0 : count)
  guard let first = input.first else { return 0 }
  var stanza = Array(input.dropFirst())
  if first & 1 == 0 {
    var writer = ByteWriter()
    writer.append("<message id='1'><gcm xmlns='google:mobile:data'>")
    guard stanza.withUnsafeBytes({ writer.appendEscapedText($0) }) else { return 0 }
    writer.append("</gcm></message>")
    stanza = writer.bytes
  }
  guard let text = readText(stanza) else { return 0 }
  text.withUnsafeBytes { answer($0) }
  return 0
}

private let stanzas = PushStanzas()

private func readText(_ stanza: [UInt8]) -> [UInt8]? {
  var scratch: [UInt8] = []
  guard let head = stanza.withUnsafeBytes({ NarrowReader.read($0, into: &scratch) }) else { return nil }
  return Array(scratch[head.text])
}

private func answer(_ text: UnsafeRawBufferPointer) {
  var reader = DownstreamReader(limits: Limits())
  var writer = ByteWriter()
  switch reader.read(text) {
  case .stanzaError(let reason):
    guard reason.hasSuffix("\n") else { fatalError("a stanza error's text does not end its line") }
  case .ack: return
  case .nack(let refusal, let reply):
    stanzas.appendNack(refusal, reply, of: text, to: &writer)
    let nack = back(writer.bytes)
    guard nack["message_type"]?.string == "nack", nack["error"]?.string == refusal.nack.rawValue,
      nack["message_id"]?.string == reply.messageID.string(in: text)
    else { fatalError("the nack says something else") }
  case .downstream(let draft):
    DeviceMessageWriter.append(
      draft, of: text, messageID: Hash128(high: 1, low: 2), origin: .sender(SenderID(1)), category: "app",
      token: "token", sentTime: WallTime(ms: 1), to: &writer)
    let json = writer.bytes
    writer.removeAll()
    json.withUnsafeBytes { stanzas.append($0, to: &writer) }
    let sent = back(writer.bytes)
    guard let came = try? JSONValue(parsing: text), let members = came["data"]?.members else { return }
    let kept = sent["data"]?.members ?? []
    for member in members where member.value.string != nil {
      guard kept.contains(member) else {
        fatalError("a member of data was lost")
      }
    }
    if let notification = came["notification"], notification.members != nil, draft.badgeStep == 0 {
      guard sent["notification"] == notification else { fatalError("the notification was changed") }
    }
  }
}

/// What a client reads of a stanza the server wrote.
private func back(_ stanza: [UInt8]) -> JSONValue {
  guard let text = readText(stanza), let value = try? JSONValue(parsing: text, depthMax: 32) else {
    fatalError("what was written cannot be read: \(String(decoding: stanza, as: UTF8.self))")
  }
  return value
}
