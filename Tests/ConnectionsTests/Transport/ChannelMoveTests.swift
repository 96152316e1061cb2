import Connections
import EventLoops
import TLSCore
import Testing

struct ChannelMoveTests {
  @Test(arguments: [true, false])
  func aChannelThatMovesUnderTrafficLosesNothing(_ isPlain: Bool) throws {
    let total = 2 << 20
    let bytes = pattern(total)
    let loops = (0..<2).map { EventLoop(name: "home-\($0)") }
    for loop in loops { try loop.start() }
    defer { for loop in loops { loop.stop() } }
    let moves = Watched(0)
    let bench = try ChannelBench(plain: isPlain) { channel in
      channel.backlogBytesMax = 64 << 20
      _ = MovingEcho(channel, loops: loops, moves: moves)
    }
    let log = ChannelLog()
    let client = try bench.connect(delegate: log).get()
    client.onLoop { channel in
      channel.backlogBytesMax = 64 << 20
      channel.send(Array(bytes[..<100_000]))
    }
    client.onLoop { $0.send(Array(bytes[100_000...])) }
    #expect(log.seen.wait(within: 60) { $0.count == total || !$0.ends.isEmpty })
    #expect(isSame(log.seen.current.bytes, bytes))
    #expect(moves.current > 3)
  }

  @Test func plaintextAfterTheMoveAndWhatWasUnreadComeToTheNewDelegate() throws {
    let home = EventLoop(name: "home")
    try home.start()
    defer { home.stop() }
    let moved = ChannelLog()
    let first = ChannelLog()
    let bench = try ChannelBench { channel in
      first.onReceived = { [unowned channel] plaintext in
        channel.send("old ")
        let isMoving = channel.move(to: home, unread: UnsafeRawBufferPointer(rebasing: plaintext[3...])) {
          $0.delegate = moved
          $0.send("new")
        }
        #expect(isMoving)
        #expect(!channel.move(to: home) { _ in })
        channel.send("then ")
      }
      channel.delegate = first
    }
    let log = ChannelLog()
    let client = try bench.connect(delegate: log).get()
    client.onLoop { $0.send("onetwo") }
    #expect(log.seen.wait { $0.bytes == Array("old then new".utf8) })
    #expect(moved.seen.wait { $0.bytes == Array("two".utf8) })
    client.onLoop { $0.send("three") }
    #expect(moved.seen.wait { $0.bytes == Array("twothree".utf8) })
    #expect(first.seen.current.bytes == Array("onetwo".utf8))
    #expect(first.seen.current.ends.isEmpty)
    client.onLoop { $0.close() }
    #expect(moved.end() == .peerClosed(isClean: true))
  }

  @Test func aChannelMayMoveToItsOwnLoop() throws {
    let moved = ChannelLog()
    let bench = try ChannelBench { channel in
      let first = ChannelLog()
      first.onReceived = { [unowned channel] _ in
        channel.move(to: channel.loop) { $0.delegate = moved }
      }
      channel.delegate = first
    }
    let client = try bench.connect().get()
    client.onLoop { $0.send("one") }
    client.onLoop { $0.send("two") }
    #expect(moved.seen.wait { $0.count >= 3 || $0.bytes.isEmpty })
    client.onLoop { $0.close() }
    #expect(moved.end() == .peerClosed(isClean: true))
  }

  @Test func aMoveToAStoppedLoopEndsTheChannelHere() throws {
    let home = EventLoop(name: "home")
    try home.start()
    home.stop()
    let first = ChannelLog()
    let bench = try ChannelBench { channel in
      first.onReceived = { [unowned channel] _ in channel.move(to: home) { _ in } }
      channel.delegate = first
    }
    let log = ChannelLog()
    let client = try bench.connect(delegate: log).get()
    client.onLoop { $0.send("one") }
    #expect(first.end() == .loopStopped)
    #expect(log.end() != nil)
  }

  @Test func aPeerThatEndsDuringTheMoveIsNoticedAfterIt() throws {
    let home = EventLoop(name: "home")
    try home.start()
    defer { home.stop() }
    let moved = ChannelLog()
    let bench = try ChannelBench { channel in
      let first = ChannelLog()
      first.onReceived = { [unowned channel] _ in channel.move(to: home) { $0.delegate = moved } }
      channel.delegate = first
    }
    let client = try bench.connect().get()
    client.onLoop {
      $0.send("one")
      $0.close()
    }
    #expect(moved.end() == .peerClosed(isClean: true))
  }
}

/// An echo that goes to another loop with every third read, giving half of what it read to its successor.
private final class MovingEcho: ChannelDelegate {
  private let channel: Channel
  private let loops: [EventLoop]
  private let moves: Watched<Int>
  private var reads = 0

  init(_ channel: Channel, loops: [EventLoop], moves: Watched<Int>) {
    self.channel = channel
    self.loops = loops
    self.moves = moves
    channel.delegate = self
  }

  func received(_ plaintext: UnsafeRawBufferPointer) {
    reads += 1
    guard reads == 3 else {
      channel.send(plaintext)
      return
    }
    let half = plaintext.count / 2
    let loops = loops
    let moves = moves
    let next = channel.loop === loops.first ? loops.last : loops.first
    guard let next else { return }
    channel.send(UnsafeRawBufferPointer(rebasing: plaintext[..<half]))
    channel.move(to: next, unread: UnsafeRawBufferPointer(rebasing: plaintext[half...])) { channel in
      moves.update { $0 += 1 }
      _ = MovingEcho(channel, loops: loops, moves: moves)
    }
  }

  func ended(_ reason: ChannelEnd) {}
}
