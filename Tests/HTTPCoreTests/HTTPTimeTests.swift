import Bytes
import HTTPCore
import Seams
import Testing

struct HTTPTimeTests {
  let limits = HTTPLimits()

  private func feed(_ connection: HTTPServerConnection, _ text: String, at now: Moment) -> HTTPRequest? {
    Array(text.utf8).withUnsafeBytes { connection.receive($0, now: now, wall: wall) }
  }

  @Test func aHeadThatDoesNotEndIsAnswered408() {
    let connection = HTTPServerConnection(now: start)
    #expect(connection.nextDeadline == start + limits.headTimeout)
    let begun = start + .seconds(5)
    #expect(feed(connection, "GET / HT", at: begun) == nil)
    #expect(connection.nextDeadline == begun + limits.headTimeout)
    // Single bytes win no time.
    #expect(feed(connection, "T", at: begun + .seconds(9)) == nil)
    #expect(connection.nextDeadline == begun + limits.headTimeout)
    connection.timeout(now: begun + .seconds(9), wall: wall)
    #expect(!connection.isDone)
    connection.timeout(now: begun + .seconds(10), wall: wall)
    #expect(connection.isDone)
    #expect(
      String(decoding: connection.output.bytes, as: UTF8.self).hasPrefix("HTTP/1.1 408 Request Timeout\r\n"))
  }

  @Test func aBodyShorterThanStatedEndsWithItsDeadline() {
    let connection = HTTPServerConnection(now: start)
    #expect(feed(connection, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab", at: start) == nil)
    #expect(connection.nextDeadline == start + limits.bodyTimeout)
    connection.timeout(now: start + limits.bodyTimeout, wall: wall)
    #expect(connection.isDone)
    #expect(String(decoding: connection.output.bytes, as: UTF8.self).hasPrefix("HTTP/1.1 408 "))
    #expect(connection.nextDeadline == nil)
  }

  @Test func anIdleConnectionIsClosedWithoutAWord() {
    for isNew in [true, false] {
      let connection = HTTPServerConnection(now: start)
      if !isNew {
        #expect(feed(connection, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", at: start) != nil)
        #expect(connection.nextDeadline == nil)
        connection.timeout(now: start + .seconds(1_000), wall: wall)
        _ = connection.respond(HTTPResponse(status: 200), now: start + .seconds(1_000), wall: wall)
        #expect(connection.nextDeadline == start + .seconds(1_000) + limits.idleTimeout)
        connection.output.removeAll()
      }
      connection.timeout(now: start + .seconds(2_000), wall: wall)
      #expect(connection.isDone && connection.output.isEmpty)
    }
  }

  @Test func aDrainClosesIdleConnectionsAndLetsOthersFinish() {
    let idle = HTTPServerConnection(now: start)
    idle.drain()
    #expect(idle.isDone && idle.output.isEmpty)
    let busy = HTTPServerConnection(now: start)
    #expect(feed(busy, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", at: start) != nil)
    busy.drain()
    #expect(!busy.isDone)
    _ = busy.respond(HTTPResponse(status: 200), now: start, wall: wall)
    #expect(busy.isDone)
    #expect(busy.respond(HTTPResponse(status: 200), now: start, wall: wall) == nil)
  }

  @Test func datesAreThoseOfHTTP() {
    #expect(HTTPDate.text(WallTime(ms: 784_111_777_999)) == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(HTTPDate.text(WallTime(ms: 951_827_696_000)) == "Tue, 29 Feb 2000 12:34:56 GMT")
  }
}
