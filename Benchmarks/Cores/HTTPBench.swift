import Bytes
import HTTPCore
import Seams

let httpCases: [Bench.Case] = [
  Bench.Case(name: "http-request-and-answer") { count in
    let bytes = Array(
      ("POST /v1/projects/demo/messages:send HTTP/1.1\r\nHost: localhost:8443\r\nUser-Agent: bench\r\n"
        + "Authorization: Bearer x\r\nContent-Type: application/json\r\nContent-Length: 600\r\n\r\n"
        + String(repeating: "a", count: 600)).utf8)
    let now = Moment(ns: 0)
    let connection = HTTPServerConnection(now: now)
    let answer = HTTPResponse(
      status: 200, fields: ["content-type": "application/json"], body: Array("{}".utf8))
    var total = 0
    for _ in 0..<count {
      let request = bytes.withUnsafeBytes { connection.receive($0, now: now, wall: WallTime(ms: 0)) }
      total += request?.body.count ?? 0
      _ = connection.respond(answer, now: now, wall: WallTime(ms: 0))
      total += connection.output.count
      connection.output.removeAll()
    }
    return total
  }
]
