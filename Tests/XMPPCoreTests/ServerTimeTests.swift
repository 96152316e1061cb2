import Seams
import Testing
import XMPPCore

@Suite struct ServerTimeTests {
  @Test func aPeerThatDoesNotLogInIsTurnedAwayAtTheDeadline() {
    for state in ServerStream.State.allCases where ![.bound, .awaitingClose, .ended].contains(state) {
      let server = Server.inState(state)
      #expect(server.stream.nextDeadline == Moment(ns: 10_000_000_000))
      server.now = Moment(ns: 9_999_999_999)
      #expect(server.advance(.zero) == "")
      let expected = streamError("connection-timeout")
      let written = server.advance(.nanoseconds(1))
      #expect(written.hasSuffix(expected))
      #expect(
        written.hasPrefix("<stream:stream ") == (state == .awaitingHeader || state == .awaitingSecondHeader))
      #expect(server.events == [.ended(.loginOverdue)])
      #expect(server.stream.nextDeadline == nil)
    }
  }

  @Test func inputDoesNotMoveTheLoginDeadline() {
    let server = Server.inState(.awaitingLogin)
    server.now = server.now + .seconds(9)
    server.feed("   ")
    #expect(server.stream.nextDeadline == Moment(ns: 10_000_000_000))
  }

  @Test func aQuietStreamIsKeptAliveThenPingedThenGivenUp() {
    let server = Server.inState(.bound)
    #expect(server.stream.nextDeadline == Moment(ns: 30_000_000_000))
    #expect(server.advance(.seconds(30)) == " ")
    #expect(server.stream.nextDeadline == Moment(ns: 60_000_000_000))
    #expect(
      server.advance(.seconds(30))
        == "<iq type=\"get\" id=\"ping-1\" from=\"gcm.googleapis.com\" to=\"123456789@gcm.googleapis.com/worker9B3D4E58\">"
        + "<ping xmlns=\"urn:xmpp:ping\"/></iq>")
    #expect(server.stream.nextDeadline == Moment(ns: 90_000_000_000))
    #expect(server.advance(.seconds(29)) == "")
    #expect(server.advance(.seconds(1)) == streamError("connection-timeout"))
    #expect(server.events == [.ended(.silent)])
  }

  @Test(arguments: [
    " ", "<iq type='result' id='ping-1'/>", "<iq type='error' id='ping-1'/>", "<presence/>", "<mess",
  ])
  func anyByteIsASignOfLife(_ sign: String) {
    let server = Server.inState(.bound)
    server.advance(.seconds(60))
    server.advance(.seconds(29))
    server.feed(sign)
    #expect(server.advance(.seconds(59)) == " ")
    #expect(server.advance(.seconds(1)).contains("ping-2"))
    #expect(server.events == [])
  }

  @Test func outputPutsTheKeepaliveOff() {
    let server = Server.inState(.bound)
    server.now = Moment(ns: 20_000_000_000)
    server.stream.wrote(now: server.now)
    #expect(server.stream.nextDeadline == Moment(ns: 50_000_000_000))
    #expect(server.advance(.seconds(29)) == "")
    #expect(server.advance(.seconds(1)) == " ")
  }

  @Test func aClosedPeerIsNotWaitedForForEver() {
    let server = Server.inState(.awaitingClose)
    #expect(server.stream.nextDeadline == Moment(ns: 5_000_000_000))
    #expect(server.advance(.seconds(5)) == endTag)
    #expect(server.events == [.ended(.closed)])
  }

  @Test func theTimesAreSettable() {
    var limits = StreamLimits()
    limits.loginWithin = .seconds(2)
    limits.keepaliveAfter = .seconds(3)
    #expect(Server.inState(.awaitingLogin, limits: limits).stream.nextDeadline == Moment(ns: 2_000_000_000))
    #expect(Server.inState(.bound, limits: limits).stream.nextDeadline == Moment(ns: 3_000_000_000))
  }
}
