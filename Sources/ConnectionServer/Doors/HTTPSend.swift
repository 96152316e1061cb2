import HTTPCore
import PushHTTP
import PushModel
import Seams
import Stores

/// One send over HTTP on its way to its answer: one message, or the messages of a multicast.
///
/// Belongs to its loop.
final class HTTPSend {
  enum Form: Equatable {
    case v1(project: String, isPretty: Bool)
    /// A token, or the tokens of `registration_ids`.
    case legacyTokens
    /// A topic or a condition, with the number that is answered.
    case legacyTopic(number: String)
    case legacyGroup
    case legacyPlain
  }

  /// What became of one message.
  struct Part {
    var messageID: String
    var answer: Answer?
    var canonical: String?
  }

  let form: Form
  let draft: DownstreamDraft
  /// What the places of `draft` point into.
  let text: [UInt8]
  let project: Project
  let sender: SenderState
  let received: Moment
  let multicastID: Int64
  let sink: HTTPSink
  /// What a test asked for.
  var fault: ArmedFault?
  var parts: [Part]
  private(set) var left: Int

  init(
    form: Form, draft: DownstreamDraft, text: [UInt8], project: Project, sender: SenderState,
    received: Moment, multicastID: Int64, messageIDs: [String], sink: HTTPSink
  ) {
    self.form = form
    self.draft = draft
    self.text = text
    self.project = project
    self.sender = sender
    self.received = received
    self.multicastID = multicastID
    self.sink = sink
    parts = messageIDs.map { Part(messageID: $0) }
    left = messageIDs.count
  }

  /// Records what became of one part; true when it was the last.
  func answered(_ index: Int, _ answer: Answer) -> Bool {
    guard parts.indices.contains(index), parts[index].answer == nil else { return false }
    parts[index].answer = answer
    left -= 1
    return left == 0
  }

  // MARK: The answer

  /// - Returns: The response to a send whose parts are all answered.
  func response() -> HTTPResponse {
    switch form {
    case .v1(let project, let isPretty): v1Response(project, isPretty)
    case .legacyTokens: tokensResponse()
    case .legacyTopic(let number):
      LegacyAnswer.topic(results.first ?? .refused("InternalServerError"), number: number)
    case .legacyGroup: groupResponse()
    case .legacyPlain: LegacyAnswer.plain(results.first ?? .refused("InternalServerError"))
    }
  }

  private func v1Response(_ project: String, _ isPretty: Bool) -> HTTPResponse {
    guard let part = parts.first else { return V1Answer.fault(.internalFault, isPretty: isPretty) }
    switch part.answer {
    case .ack?, .ackCounted?:
      return V1Answer.sent(project: project, messageID: part.messageID, isPretty: isPretty)
    case .nack(let code, let description, let retryAfter)?:
      var fault = V1Answer.fault(for: code, description)
      if let retryAfter, fault.retryAfter != nil { fault.retryAfter = retryAfter }
      return V1Answer.fault(fault, isPretty: isPretty)
    case nil: return V1Answer.fault(.internalFault, isPretty: isPretty)
    }
  }

  private var results: [LegacyResult] {
    parts.map { part in
      switch part.answer {
      case .ack?, .ackCounted?: .sent(messageID: part.messageID, canonical: part.canonical)
      case .nack(let code, let description, _)?: .refused(LegacyAnswer.error(for: code, description))
      case nil: .refused("InternalServerError")
      }
    }
  }

  private func tokensResponse() -> HTTPResponse {
    var response = LegacyAnswer.multicast(id: multicastID, results)
    let pauses = parts.compactMap { part -> Int? in
      guard case .nack(let code, _, let seconds)? = part.answer else { return nil }
      return seconds ?? (code == .serviceUnavailable ? 1 : nil)
    }
    // FCM: Retry-After may stand beside results that are worth a retry.
    if let pause = pauses.max() { response.fields.append("retry-after", String(pause)) }
    return response
  }

  private func groupResponse() -> HTTPResponse {
    switch parts.first?.answer {
    case .ackCounted(let success, let failed)?: return LegacyAnswer.group(success: success, failed: failed)
    case .ack?: return LegacyAnswer.group(success: 1, failed: [])
    case .nack(let code, _, let retryAfter)?:
      switch code {
      case .deviceUnregistered, .senderIDMismatch, .badRegistration, .invalidJSON: return tokensResponse()
      // Nobody was reached, and somebody may be later.
      default: return LegacyAnswer.unavailable(retryAfter: retryAfter ?? 1)
      }
    case nil: return LegacyAnswer.unavailable()
    }
  }
}
