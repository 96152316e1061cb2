// modules: Bytes Seams JSONCore HTTPCore PushModel PushHTTP
import Bytes
import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Seams

/// Bodies that come over HTTPS: HTTP v1, both forms of legacy HTTP, batches, assertions and management calls.
///
/// First byte of an input: which of them the rest is. Holds that nothing traps; that whatever a message comes to is JSON
/// that devices of every platform can read; that all forms of a topic message are those of a single one; and that an
/// answer is JSON too.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTPBodies(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = UnsafeBufferPointer(start: start, count: start == nil ? 0 : count)
  guard let first = input.first else { return 0 }
  let body = Array(input.dropFirst())
  switch first % 6 {
  case 0: readV1(body)
  case 1: readLegacy(body, "application/json")
  case 2: readLegacy(body, "application/x-www-form-urlencoded")
  case 3: _ = try? BatchRequest.parts(body, contentType: "multipart/mixed; boundary=b", partsMax: 8)
  case 4: readToken(String(decoding: body, as: UTF8.self))
  default:
    _ = try? TopicBatch(body, limits: Limits())
    _ = try? GroupCall(body, limits: Limits())
    _ = try? TokenImport(body)
    _ = RequestTarget(String(decoding: body, as: UTF8.self))
  }
  return 0
}

private let wall = WallTime(ms: 1_700_000_000_000)

private func readV1(_ body: [UInt8]) {
  var reader = V1Reader(limits: Limits())
  switch body.withUnsafeBytes({ reader.read($0, wall: wall) }) {
  case .fault(let fault):
    let response = V1Answer.fault(fault)
    guard (400...499).contains(response.status), (try? JSONValue(parsing: response.body)) != nil else {
      fatalError("a fault is no JSON, or blames the server")
    }
  case .send(var send):
    send.setMessageID("m\"1")
    if send.installation != nil { send.setToken("t") }
    var forms = ByteWriter()
    send.text.withUnsafeBytes { PlatformTails.append(send.draft, of: $0, sentTime: wall, to: &forms) }
    for platform in Platform.allCases {
      let single = tail(send, platform)
      guard
        let value = try? JSONValue(
          parsing: [UInt8(ascii: "{"), UInt8(ascii: "\""), UInt8(ascii: "h")]
            + Array("\":1".utf8) + single), value["ttl"]?.int != nil
      else { fatalError("what a device gets is no JSON") }
      let shared = forms.bytes.withUnsafeBytes { PlatformTails.tail($0, for: platform) } ?? forms.bytes
      guard shared == single else { fatalError("a topic message has another form than a single one") }
    }
  }
}

private func tail(_ send: V1Send, _ platform: Platform) -> [UInt8] {
  var writer = ByteWriter()
  send.text.withUnsafeBytes {
    DeviceMessageWriter.appendTail(send.draft.rendered(for: platform), of: $0, sentTime: wall, to: &writer)
  }
  return writer.bytes
}

private func readLegacy(_ body: [UInt8], _ type: String) {
  var reader = LegacyReader(limits: Limits())
  var fields = HTTPFields()
  fields.append("content-type", type)
  switch reader.read(body, fields, multicastID: 1) {
  case .answer(let response):
    guard response.status == 200 || response.status == 400, !response.body.isEmpty else {
      fatalError("an answer of legacy HTTP is empty, or blames the server")
    }
  case .send(var send):
    send.setMessageID("m")
    let id = send.draft.reply.messageID
    guard send.text.withUnsafeBytes({ id.string(in: $0) }) == "m" else { fatalError("the id is lost") }
  }
}

private func readToken(_ text: String) {
  _ = AccessToken(text, { _ in Array(repeating: 0, count: 32) }, areEqual: ==)
  guard let token = JSONWebToken(text) else { return }
  let rules = AssertionRules(leewaySeconds: 300)
  _ = rules.checkTimes(token.claims, now: wall)
  _ = rules.checkAudience(token.claims, own: [])
}
