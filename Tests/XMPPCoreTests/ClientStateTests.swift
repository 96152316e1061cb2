import Seams
import Testing
import XMPPCore

/// Every state of the opening side meets every kind of input.
@Suite struct ClientStateTests {
  enum Input: String, CaseIterable, Sendable {
    case space, header, emptyHeader, loginFeatures, success, failure, bindFeatures, demandingFeatures, bound,
      sessionResult,
      ping, presence, message, stanzaError, unknown, streamError, end, garbage, deadline

    var bytes: String {
      switch self {
      case .space: " "
      case .header: serverTag
      case .emptyHeader: serverTag.dropLast() + "/>"
      case .loginFeatures: XMPPCoreTests.loginFeatures
      case .success: XMPPCoreTests.success
      case .failure: XMPPCoreTests.failure("not-authorized")
      case .bindFeatures: XMPPCoreTests.bindFeatures
      case .demandingFeatures: Client.steps[4].1
      case .bound: Client.bound
      case .sessionResult: Client.steps[6].1
      case .ping: "<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>"
      case .presence: "<presence/>"
      case .message: gcm("{}")
      case .stanzaError: "<message type='error'><gcm xmlns='google:mobile:data'>{}</gcm></message>"
      case .unknown: "<other xmlns='urn:other'/>"
      case .streamError: "<stream:error/>"
      case .end: endTag
      case .garbage: "<<"
      case .deadline: ""
      }
    }
  }

  /// Where each input leads; an input not named ends the stream.
  private func next(_ state: ClientStream.State, _ input: Input) -> ClientStream.State {
    switch (state, input) {
    case (.ended, _): .ended
    case (.idle, .deadline), (.idle, .space): .idle
    case (_, .space): state
    case (.awaitingHeader, .header): .awaitingFeatures
    case (.awaitingSecondHeader, .header): .awaitingSecondFeatures
    // In an open stream it is the start of a stanza, whose end never comes.
    case (_, .header) where state != .idle: state
    case (.awaitingFeatures, .loginFeatures): .awaitingSuccess
    case (.awaitingSuccess, .success): .awaitingSecondHeader
    case (.awaitingSecondFeatures, .bindFeatures), (.awaitingSecondFeatures, .demandingFeatures):
      .awaitingBinding
    // The state set up here was told that a session is demanded.
    case (.awaitingBinding, .bound): .awaitingSession
    case (.awaitingSession, .sessionResult): .ready
    case (.awaitingSession, .bound): .awaitingSession
    case (.awaitingBinding, .sessionResult): .awaitingBinding
    case (.awaitingBinding, .ping), (.awaitingSession, .ping): state
    case (.awaitingBinding, .presence), (.awaitingSession, .presence): state
    case (.awaitingBinding, .message), (.awaitingSession, .message): state
    case (.awaitingBinding, .stanzaError), (.awaitingSession, .stanzaError): state
    case (.ready, .end), (.ready, .garbage), (.ready, .streamError), (.ready, .deadline): .ended
    case (.awaitingEnd, .end), (.awaitingEnd, .garbage), (.awaitingEnd, .streamError): .ended
    case (.awaitingEnd, .deadline): .ended
    // Elements that are unknown, or not for clients, are let pass.
    case (.ready, _), (.awaitingEnd, _): state
    default: .ended
    }
  }

  @Test(arguments: ClientStream.State.allCases, Input.allCases)
  func everyInputLeadsSomewhereDefinite(_ state: ClientStream.State, _ input: Input) {
    let client = Client.inState(state)
    #expect(client.stream.state == state)
    if input == .deadline {
      client.advance(.seconds(100))
    } else {
      client.feed(input.bytes)
    }
    let expected = next(state, input)
    #expect(client.stream.state == expected)
    let ends = client.events.filter { if case .ended = $0 { true } else { false } }
    #expect(ends.count == (expected == .ended && state != .ended ? 1 : 0))
    #expect((client.stream.nextDeadline == nil) == (expected == .ended || expected == .idle))
  }
}
