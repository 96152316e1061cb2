import Bytes
import Seams
import Testing
import XMLCore
import XMPPCore

/// Client and server machine joined by two queues of bytes and one clock.
final class Pair {
  let client: Client
  let server = Server()
  /// Bytes moved at a time.
  let step: Int
  private var toServer: [UInt8]
  private var toClient: [UInt8] = []

  init(password: String = "key", step: Int = 1_000, window: Int? = nil, isPipelined: Bool = false) {
    client = Client(password: password, window: window, isPipelined: isPipelined)
    self.step = step
    toServer = Array(client.open().utf8)
  }

  /// Moves bytes until none are under way.
  func settle() {
    toServer += Array(client.written().utf8)
    toClient += Array(server.written().utf8)
    while !toServer.isEmpty || !toClient.isEmpty {
      let up = Array(toServer.prefix(step))
      toServer.removeFirst(up.count)
      toClient += Array(server.feed(up).utf8)
      let down = Array(toClient.prefix(step))
      toClient.removeFirst(down.count)
      toServer += Array(client.feed(down).utf8)
    }
  }

  /// Jumps to the next deadline of either side.
  func jump() {
    let due = [client.stream.nextDeadline, server.stream.nextDeadline].compactMap(\.self).min()
    guard let due else { return }
    let pause = due - client.now
    toServer += Array(client.advance(pause).utf8)
    toClient += Array(server.advance(pause).utf8)
  }
}

@Suite struct BackToBackTests {
  @Test(arguments: [1, 2, 3, 7, 50, 100_000])
  func theTwoMachinesUnderstandEachOther(_ step: Int) {
    let pair = Pair(step: step)
    pair.settle()
    #expect(pair.client.events == [.ready(address)])
    #expect(pair.server.stream.jid == address)

    pair.client.output.append(gcm("{&quot;n&quot;:1}"))
    pair.server.output.append(MessageEnvelope.open)
    pair.server.output.append("{}")
    pair.server.output.append(MessageEnvelope.close)
    pair.settle()
    #expect(pair.server.messages == ["m1 {\"n\":1}"])
    #expect(pair.client.messages == ["{}"])

    _ = pair.client.stream.close(output: &pair.client.output, now: pair.client.now)
    pair.settle()
    #expect(pair.server.events.last == .peerClosing)
    pair.server.stream.close(output: &pair.server.output)
    pair.settle()
    #expect(pair.client.events.last == .ended(.closed))
  }

  @Test func aWrongKeyIsNamed() {
    let pair = Pair(password: "wrong")
    pair.settle()
    #expect(pair.client.events == [.ended(.failed(.loginRefused(.notAuthorized)))])
    #expect(pair.server.events.last == .ended(.closed))
  }

  @Test(arguments: [1, 2, 7, 50, 100_000])
  func aLoginSaidAtOnceIsUnderstood(_ step: Int) {
    let pair = Pair(step: step, isPipelined: true)
    pair.settle()
    #expect(pair.client.events == [.ready(address)])
    #expect(pair.server.stream.jid == address)
  }

  @Test func aWrongKeyIsNamedWhenAllWasSaidAtOnce() {
    let pair = Pair(password: "wrong", isPipelined: true)
    pair.settle()
    #expect(pair.client.events == [.ended(.failed(.loginRefused(.notAuthorized)))])
    #expect(pair.server.stream.state == .ended)
  }

  @Test func anIdlePairStaysUpForAnHour() {
    let pair = Pair()
    pair.settle()
    var jumps = 0
    while pair.client.now < Moment(ns: 3_600_000_000_000) {
      pair.jump()
      pair.settle()
      jumps += 1
    }
    #expect(pair.client.stream.state == .ready)
    #expect(pair.server.stream.state == .bound)
    // A keepalive each way every 30 seconds is enough: nobody has to ask.
    #expect(jumps <= 240)
  }

  @Test func aReplacedStreamLearnsWhy() {
    let pair = Pair()
    pair.settle()
    pair.server.stream.fail(.conflict, output: &pair.server.output)
    pair.settle()
    #expect(pair.client.events.last == .ended(.failed(.streamError("conflict", text: nil))))
  }

  @Test func aRefusedMessageComesBack() {
    let pair = Pair()
    pair.settle()
    pair.client.output.append(gcm("[&lt;]"))
    pair.settle()
    guard case .message(let head)? = pair.server.events.last else {
      Issue.record("no message")
      return
    }
    pair.server.stream.refuse(
      head, in: pair.server.scratch, .badRequest("InvalidJson"), output: &pair.server.output)
    pair.settle()
    #expect(
      pair.client.events.last
        == .refused(
          RefusedMessage(id: "m1", code: "400", condition: "bad-request", text: "InvalidJson", json: "[<]")))
  }
}
