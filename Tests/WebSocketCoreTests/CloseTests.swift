import Bytes
import Seams
import Testing
import WebSocketCore

@Suite struct CloseTests {
  @Test func aCloseIsAnsweredWithItsCode() {
    let payload: [UInt8] = [0x03, 0xE9] + Array("bye".utf8)
    let heard = hearAnyWay(masked(1, "last") + masked(8, payload) + masked(1, "late"))
    #expect(heard?.end == .peerClosed(.goingAway, reason: "bye"))
    #expect(heard?.texts == ["last"])
    #expect(heard?.output == frame(8, [0x03, 0xE9]))
    #expect(hearAnyWay(masked(8))?.end == .peerClosed(nil, reason: ""))
    #expect(hearAnyWay(masked(8))?.output == frame(8))
  }

  @Test func onlyCodesForTheWireAreTaken() {
    for code in UInt16(0)...5_100 {
      let heard = hear([masked(8, [UInt8(code >> 8), UInt8(code & 0xFF)])])
      let isFine =
        [1000, 1001, 1002, 1003].contains(code) || (1007...1014).contains(code)
        || (3000...4999).contains(code)
      #expect((heard.end == .peerClosed(CloseCode(rawValue: code), reason: "")) == isFine)
      if !isFine { #expect(heard.end == .failed(.badClose)) }
    }
  }

  @Test func aCloseFrameInTheMiddleOfAMessageEndsIt() {
    let heard = hearAnyWay(masked(1, "half", final: false) + masked(8, [0x03, 0xE8]))
    #expect(heard?.end == .peerClosed(.normal, reason: ""))
    #expect(heard?.messages == [])
  }

  @Test func ourCloseAwaitsThePeersAndDropsWhatComesBefore() {
    for answer in [masked(8, [0x03, 0xE8]), masked(8)] {
      for pieces in cuts(of: masked(1, "dropped") + masked(9, "x") + masked(1, [0xFF], final: false) + answer)
      {
        let connection = WebSocketConnection(.server, now: start, random: { 0 })
        var scratch: [UInt8] = []
        var output = ByteWriter()
        connection.close(.goingAway, reason: "drain", output: &output, now: start)
        connection.close(.normal, output: &output, now: start)
        #expect(output.bytes == frame(8, [0x03, 0xE9] + Array("drain".utf8)))
        #expect(connection.state == .closing)
        var events: [WebSocketEvent] = []
        for piece in pieces {
          piece.withUnsafeBytes { chunk in
            var offset = 0
            while let event = connection.next(chunk, &offset, scratch: &scratch, output: &output, now: start)
            {
              events.append(event)
            }
          }
        }
        #expect(events == [.alive, .ended(.closed)])
        #expect(connection.state == .ended)
        #expect(output.count == 2 + 7)
        #expect(connection.heldBytes == 0)
      }
    }
  }

  @Test func nothingIsSentAfterAClose() {
    let connection = WebSocketConnection(.client, now: start, random: { 0 })
    var output = ByteWriter()
    connection.close(.normal, reason: String(repeating: "x", count: 124), output: &output, now: start)
    // Too long a reason is left out.
    #expect(output.count == 2 + 4 + 2)
    [UInt8(1)].withUnsafeBytes { connection.send(.binary, $0, output: &output) }
    connection.ping(output: &output, now: start)
    #expect(output.count == 8)
  }

  @Test func aCloseWithoutAnswerEndsAtItsDeadline() {
    let connection = WebSocketConnection(.server, now: start, random: { 0 })
    var output = ByteWriter()
    connection.close(.normal, output: &output, now: start)
    #expect(connection.nextDeadline == start + .seconds(5))
    #expect(connection.deadlineReached(now: start + .seconds(4), output: &output) == nil)
    #expect(connection.deadlineReached(now: start + .seconds(5), output: &output) == .ended(.closeOverdue))
    #expect(connection.nextDeadline == nil)
  }

  @Test func aSilentPeerIsPingedAndThenGivenUp() {
    let connection = WebSocketConnection(.server, now: start, random: { 0 })
    var output = ByteWriter()
    #expect(connection.nextDeadline == start + .seconds(30))
    #expect(connection.deadlineReached(now: start + .seconds(30), output: &output) == nil)
    #expect(output.bytes == frame(9))
    #expect(connection.nextDeadline == start + .seconds(90))
    #expect(connection.deadlineReached(now: start + .seconds(90), output: &output) == .ended(.unanswered))
  }

  @Test func anAnswerToAPingMovesTheDeadline() {
    let connection = WebSocketConnection(.server, now: start, random: { 0 })
    var output = ByteWriter()
    var scratch: [UInt8] = []
    _ = connection.deadlineReached(now: start + .seconds(30), output: &output)
    let pong = masked(10)
    let event = pong.withUnsafeBytes { chunk in
      var offset = 0
      return connection.next(chunk, &offset, scratch: &scratch, output: &output, now: start + .seconds(31))
    }
    #expect(event == .alive)
    #expect(connection.nextDeadline == start + .seconds(61))
  }

  @Test func aConnectionMayNeverPing() {
    var limits = WebSocketLimits()
    limits.pingAfter = nil
    let connection = WebSocketConnection(.client, limits: limits, now: start, random: { 0 })
    #expect(connection.nextDeadline == nil)
    var output = ByteWriter()
    connection.ping([UInt8](repeating: 1, count: 200), output: &output, now: start)
    #expect(output.count == 2 + 4 + 125)
    #expect(connection.nextDeadline == start + .seconds(60))
  }
}
