import HTTPCore
import PushHTTP
import PushModel
import Seams
import Stores
import Telemetry

// Faults that tests of senders asked for, as they befall sends over HTTP.

extension SendDoor {
  /// Looks whether a fault befalls one message; false when it is not taken.
  ///
  /// - Parameter target: As the sender wrote it.
  func goesOn(_ send: HTTPSend, _ slot: UInt32, target: String?) -> Bool {
    guard let fault = context.faults.next(sender: send.project.sender, token: target) else { return true }
    // Of a multicast the last one is applied.
    send.fault = fault
    if case .nack(let code) = fault.kind {
      refuse(slot, code, "A fault that a test asked for".retry(fault.retryAfter))
      return false
    }
    return true
  }

  /// The one place where the answer to a send leaves.
  func conclude(_ send: HTTPSend) {
    guard let fault = send.fault else { return send.sink(send.response()) }
    guard fault.delayMs == 0 else {
      send.fault?.delayMs = 0
      let stream = reference.stream
      return shard.after(.milliseconds(fault.delayMs)) {
        ($0.senderStreams[stream] as? SendDoor)?.conclude(send)
      }
    }
    switch fault.kind {
    case .dropAck, .cut: send.sink.cut()
    // The reply is kept: nobody is answered, and nothing ends.
    case .halfOpen: mute(send)
    case .unavailable(let status):
      send.sink(Self.marked(send.response(status: status), fault))
    case .drain:
      send.sink.drain()
      send.sink(send.response())
    case .nack, .delay: send.sink(Self.marked(send.response(), fault))
    }
  }

  /// The response with the header `Retry-After` that the fault brings, well formed or not.
  private static func marked(_ response: HTTPResponse, _ fault: ArmedFault) -> HTTPResponse {
    guard let text = fault.retryAfter else { return response }
    var fields = HTTPFields()
    for field in response.fields.all where field.name != "retry-after" {
      fields.append(field.name, field.value)
    }
    fields.append("retry-after", text)
    return HTTPResponse(status: response.status, fields: fields, body: response.body)
  }
}

extension HTTPSend {
  /// The response that hides what became of the send behind a status.
  func response(status: Int) -> HTTPResponse {
    guard case .v1(_, let isPretty) = form else {
      return status == 503 ? LegacyAnswer.unavailable() : .legacyText(status, "Unavailable\n")
    }
    let fault: V1Fault
    switch status {
    case 503: fault = .unavailable()
    case 500: fault = .internalFault
    case 429: fault = .quota("Quota exceeded.", subject: "project")
    case 404: fault = .unregistered
    case 401: fault = .badCredentials
    default:
      fault = V1Fault(
        status, status < 500 ? "INVALID_ARGUMENT" : "UNAVAILABLE", "A fault that a test asked for.")
    }
    return V1Answer.fault(fault, isPretty: isPretty)
  }
}
