import Seams
import Testing
import XMPPCore

/// Every state meets every kind of input.
@Suite struct ServerStateTests {
  enum Input: String, CaseIterable, Sendable {
    case space, header, emptyHeader, auth, wrongAuth, challenge, response, abort, bind, ping, presence,
      message, unknown,
      streamError, end, garbage, deadline

    var bytes: String {
      switch self {
      case .space: " "
      case .header: openTag
      case .emptyHeader: openTag.dropLast() + "/>"
      case .auth: XMPPCoreTests.auth("", "123456789")
      case .wrongAuth: XMPPCoreTests.auth("", "123456789", "wrong")
      case .challenge: "<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
      case .response:
        XMPPCoreTests.auth("", "123456789").replacing("auth mechanism=\"PLAIN\"", with: "response")
          .replacing("/auth", with: "/response")
      case .abort: "<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
      case .bind: XMPPCoreTests.bind("worker")
      case .ping: "<iq type='get'><ping xmlns='urn:xmpp:ping'/></iq>"
      case .presence: "<presence/>"
      case .message: gcm("{}")
      case .unknown: "<other/>"
      case .streamError: "<stream:error/>"
      case .end: endTag
      case .garbage: "<<"
      case .deadline: ""
      }
    }
  }

  /// Where each input leads; an input not named ends the stream with an error.
  private func next(_ state: ServerStream.State, _ input: Input) -> ServerStream.State {
    switch (state, input) {
    case (.ended, _),
      (_, .garbage) where state != .awaitingVerdict && state != .awaitingClose:
      .ended
    case (_, .space) where state != .awaitingVerdict: state
    case (.awaitingHeader, .header): .awaitingLogin
    // To the framer it is the start of a stanza, whose end never comes.
    case (.awaitingLogin, .header), (.awaitingResponse, .header), (.awaitingBind, .header), (.bound, .header):
      state
    case (.awaitingLogin, .auth), (.awaitingResponse, .auth), (.awaitingResponse, .response):
      .awaitingSecondHeader
    case (.awaitingLogin, .wrongAuth), (.awaitingResponse, .wrongAuth): .awaitingLogin
    case (.awaitingLogin, .abort), (.awaitingResponse, .abort): .awaitingLogin
    case (.awaitingLogin, .challenge), (.awaitingResponse, .challenge): .awaitingResponse
    case (.awaitingVerdict, _) where input != .deadline: .awaitingVerdict
    case (.awaitingSecondHeader, .header): .awaitingBind
    case (.awaitingBind, .bind): .bound
    case (.bound, .bind), (.bound, .ping), (.bound, .presence), (.bound, .message): .bound
    case (.bound, .end): .awaitingClose
    case (.awaitingClose, _) where input != .deadline: .awaitingClose
    default: .ended
    }
  }

  @Test(arguments: ServerStream.State.allCases, Input.allCases)
  func everyInputLeadsSomewhereDefinite(_ state: ServerStream.State, _ input: Input) {
    let server = Server.inState(state)
    if input == .deadline {
      server.advance(.seconds(100))
    } else {
      server.feed(input.bytes)
    }
    let expected = next(state, input)
    #expect(server.stream.state == expected)
    let ends = server.events.filter { if case .ended = $0 { true } else { false } }
    #expect(ends.count == (expected == .ended && state != .ended ? 1 : 0))
    #expect((server.stream.nextDeadline == nil) == (expected == .ended))
  }
}
