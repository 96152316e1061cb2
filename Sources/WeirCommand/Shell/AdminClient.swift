import Connections
import EventLoops
import Foundation
import HTTPCore
import JSONCore

/// Calls the admin surface of a running server.
final class AdminClient: Sendable {
  private let loop: EventLoop
  private let endpoint: Endpoint
  private let key: String

  init(_ endpoint: Endpoint, key: String) throws {
    self.endpoint = endpoint
    self.key = key
    loop = EventLoop(name: "weir-admin")
    try loop.start()
  }

  deinit { loop.stop() }

  /// - Parameter path: Behind `/admin/v1`, percent-encoded.
  func call(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws(CommandFault)
    -> JSONValue
  {
    var fields = HTTPFields()
    fields.append("Authorization", "Bearer \(key)")
    fields.append("Accept", "application/json")
    if body != nil { fields.append("Content-Type", "application/json") }
    let request = HTTPRequest(
      method: method, target: "/admin/v1" + path, fields: fields, body: body?.bytes ?? [])
    let result = await withCheckedContinuation { continuation in
      let isComing = loop.submit { [endpoint, loop] in
        HTTPExchange.send(
          request, host: endpoint.host, port: endpoint.port, name: nil, context: nil, timeout: .seconds(10),
          on: loop
        ) { continuation.resume(returning: $0) }
      }
      if !isComing { continuation.resume(returning: .failure(.channel(.loopStopped))) }
    }
    let response: HTTPResponse
    switch result {
    case .success(let answered): response = answered
    case .failure(let fault):
      throw CommandFault(
        .cannotConnect, "The admin surface at \(endpoint) does not answer: \(fault). Is the server running?")
    }
    let answer = try? JSONValue(parsing: response.body)
    guard (200..<300).contains(response.status), let answer else {
      let said = answer?["error"]?["message"]?.string ?? "status \(response.status)"
      throw CommandFault(response.status == 401 ? .cannotConnect : .someFailed, said)
    }
    return answer
  }
}

extension String {
  /// For one segment of a path.
  var pathEncoded: String {
    addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(.init(charactersIn: "-._~:"))) ?? self
  }
}
