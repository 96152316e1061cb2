import Bytes
import Seams
import Testing
import WebSocketCore

/// Both sides back to back, with random messages, pings and cuts.
@Suite struct ConversationTests {
  final class Side {
    let connection: WebSocketConnection
    var scratch: [UInt8] = []
    var output = ByteWriter()
    var received: [[UInt8]] = []
    var end: WebSocketEnd?

    init(_ role: WebSocketConnection.Role, _ seed: UInt64) {
      connection = WebSocketConnection(role, now: start, random: { seed })
    }

    func feed(_ bytes: [UInt8], _ chance: inout SeededChance) {
      var rest = bytes[...]
      while !rest.isEmpty {
        let piece = Array(rest.prefix(Int.random(in: 1...300, using: &chance)))
        rest = rest.dropFirst(piece.count)
        piece.withUnsafeBytes { chunk in
          var offset = 0
          while let event = connection.next(chunk, &offset, scratch: &scratch, output: &output, now: start) {
            switch event {
            case .message(_, let range): received.append(Array(scratch[range]))
            case .alive: break
            case .ended(let end): self.end = end
            }
          }
        }
      }
    }
  }

  @Test func whatOneSideSendsTheOtherReads() {
    for seed in 0..<30 as Range<UInt64> {
      var chance = SeededChance(seed: seed)
      let (client, server) = (Side(.client, chance.next()), Side(.server, chance.next()))
      var sent: [[[UInt8]]] = [[], []]
      for _ in 0..<60 {
        let index = Int.random(in: 0...1, using: &chance)
        let (from, other) = index == 0 ? (client, server) : (server, client)
        if Int.random(in: 0..<5, using: &chance) == 0 {
          from.connection.ping([1, 2], output: &from.output, now: start)
        } else {
          let message = [UInt8](repeating: UInt8(ascii: "x"), count: Int.random(in: 0...700, using: &chance))
          message.withUnsafeBytes { from.connection.send(.text, $0, output: &from.output) }
          sent[index].append(message)
        }
        if Bool.random(using: &chance) {
          other.feed(from.output.take(), &chance)
        }
      }
      for _ in 0..<3 {
        server.feed(client.output.take(), &chance)
        client.feed(server.output.take(), &chance)
      }
      #expect(client.received == sent[1])
      client.connection.close(.normal, reason: "done", output: &client.output, now: start)
      server.feed(client.output.take(), &chance)
      client.feed(server.output.take(), &chance)
      #expect(server.received == sent[0])
      #expect(server.end == .peerClosed(.normal, reason: "done"))
      #expect(client.end == .closed)
    }
  }
}
