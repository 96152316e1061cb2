import Bytes
import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Seams
import Testing

let token = "dQw4w9WgXcQ_abcdefghij:APA91b" + String(repeating: "x", count: 43)
let wall = WallTime(ms: 1_700_000_000_000)

/// What a body of HTTP v1 comes to.
func reading(_ body: String, limits: Limits = Limits()) -> V1Reading {
  var reader = V1Reader(limits: limits)
  return Array(body.utf8).withUnsafeBytes { reader.read($0, wall: wall) }
}

func sent(_ body: String, limits: Limits = Limits(), at: SourceLocation = #_sourceLocation) throws -> V1Send {
  switch reading(body, limits: limits) {
  case .send(let send): return send
  case .fault(let fault):
    Issue.record("refused: \(fault)", sourceLocation: at)
    throw fault
  }
}

func fault(_ body: String, limits: Limits = Limits(), at: SourceLocation = #_sourceLocation) throws -> V1Fault
{
  switch reading(body, limits: limits) {
  case .fault(let fault): return fault
  case .send:
    Issue.record("taken: \(body)", sourceLocation: at)
    throw NotRefused()
  }
}

struct NotRefused: Error {}

/// What a device of a platform gets, without the head.
func rendered(_ send: V1Send, for platform: Platform = .android) throws -> JSONValue {
  var writer = ByteWriter()
  writer.append("{\"head\":1")
  send.text.withUnsafeBytes {
    DeviceMessageWriter.appendTail(
      send.draft.rendered(for: platform), of: $0, sentTime: wall, to: &writer)
  }
  return try JSONValue(parsing: writer.bytes)
}

/// A send to `token` with further members of `message`.
func message(_ members: String) -> String {
  "{\"message\":{\"token\":\"\(token)\"\(members.isEmpty ? "" : ",")\(members)}}"
}

func text(_ response: HTTPResponse) -> String { String(decoding: response.body, as: UTF8.self) }
