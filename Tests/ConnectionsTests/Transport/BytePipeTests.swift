import Connections
import EventLoops
import Testing

/// A connection that another one carries, its channel on any loop.
struct BytePipeTests {
  private let loops = [EventLoop(name: "pipe-a"), EventLoop(name: "pipe-b")]

  /// A pipe of which the test is the carrier, and a started channel on the first loop.
  private func opened(_ log: ChannelLog, consumedStep: Int = 1) async throws -> (
    pipe: BytePipe, wakes: Watched<Int>, channel: ChannelHolder
  ) {
    for loop in loops { try loop.start() }
    let wakes = Watched(0)
    let pipe = BytePipe(consumedStep: consumedStep) { wakes.update { $0 += 1 } }
    let loop = loops[0]
    let channel = try await loop.perform {
      let channel = Channel(PipeStream(pipe, peer: nil, on: loop))
      channel.delegate = log
      channel.start()
      return ChannelHolder(channel)
    }
    return (pipe, wakes, channel)
  }

  private func stop() { for loop in loops { loop.stop() } }

  /// Plays a carrier that sends at once.
  private func sent(_ pipe: BytePipe) -> (text: String, ending: BytePipe.Ending?) {
    let news = pipe.takeNews()
    pipe.carrierHolds(0)
    return (String(decoding: news.bytes, as: UTF8.self), news.ending)
  }

  @Test func bytesGoBothWaysAndBothEndsAreWokenOnce() async throws {
    let log = ChannelLog()
    let (pipe, wakes, channel) = try await opened(log)
    pipe.deliver(Array("in".utf8))
    #expect(log.seen.wait { $0.bytes == Array("in".utf8) })
    #expect(wakes.wait { $0 == 1 })
    #expect(pipe.takeNews().consumed == 2)
    channel.onLoop { $0.send("out") }
    #expect(wakes.wait { $0 == 2 })
    channel.onLoop { #expect($0.queuedBytes == 3) }
    #expect(sent(pipe).text == "out")
    #expect(log.seen.wait { $0.writables == 1 })
    channel.onLoop { #expect($0.queuedBytes == 0) }
    stop()
  }

  @Test func aMoveLosesNothingAndKeepsTheOrder() async throws {
    let (first, second) = (ChannelLog(), ChannelLog())
    let (pipe, _, channel) = try await opened(first, consumedStep: 1_000)
    let target = loops[1]
    pipe.deliver(Array("a".utf8))
    #expect(first.seen.wait { $0.count == 1 })
    channel.onLoop { channel in
      channel.send("1")
      channel.move(to: target) { $0.delegate = second }
    }
    for number in 0..<100 { pipe.deliver(Array("b\(number)".utf8)) }
    #expect(second.seen.wait { $0.bytes.suffix(3).elementsEqual("b99".utf8) })
    #expect(second.seen.current.bytes == (0..<100).flatMap { Array("b\($0)".utf8) })
    #expect(first.seen.current.count == 1)
    #expect(sent(pipe).text == "1")
    stop()
  }

  @Test func theCarrierHearsOfTakenBytesInSteps() async throws {
    let log = ChannelLog()
    let (pipe, wakes, _) = try await opened(log, consumedStep: 100)
    pipe.deliver([UInt8](repeating: 0, count: 99))
    #expect(log.seen.wait { $0.count == 99 })
    #expect(wakes.current == 0)
    pipe.deliver([0])
    #expect(wakes.wait { $0 == 1 })
    #expect(pipe.takeNews().consumed == 100)
    stop()
  }

  @Test func aPausedChannelLeavesBytesWhereTheyAre() async throws {
    let log = ChannelLog()
    let (pipe, _, channel) = try await opened(log)
    #expect(log.seen.wait { $0.opened == 1 })
    channel.onLoop { $0.pauseReading() }
    pipe.deliver(Array("late".utf8))
    channel.onLoop { _ in }
    #expect(log.seen.current.count == 0 && pipe.takeNews().consumed == 0)
    channel.onLoop { $0.resumeReading() }
    #expect(log.seen.wait { $0.count == 4 })
    stop()
  }

  @Test func aCarrierThatIsGoneHandsOverWhatCameBefore() async throws {
    let log = ChannelLog()
    let (pipe, _, channel) = try await opened(log)
    pipe.deliver(Array("last words".utf8))
    pipe.breakOff()
    #expect(log.end() == .network(.reset))
    #expect(log.seen.current.count == 10)
    channel.onLoop { $0.send("nobody") }
    #expect(sent(pipe).text == "")
    stop()
  }

  @Test func aChannelThatClosesFinishesAndWaitsForThePeer() async throws {
    let log = ChannelLog()
    let (pipe, wakes, channel) = try await opened(log)
    channel.onLoop { channel in
      channel.send("bye")
      channel.close()
    }
    #expect(wakes.wait { $0 > 0 })
    // The flush that woke the carrier is over when the next job runs.
    channel.onLoop { _ in true }
    let farewell = sent(pipe)
    #expect(farewell.text == "bye" && farewell.ending == .finished)
    let before = wakes.current
    pipe.deliverEnd()
    #expect(log.end() == .closed)
    #expect(wakes.wait { $0 > before })
    #expect(sent(pipe).ending == .closed)
    stop()
  }

  @Test func aSlowPeerIsGivenUpAtTheBacklogLimit() async throws {
    let log = ChannelLog()
    let (pipe, _, channel) = try await opened(log)
    channel.onLoop { channel in
      channel.backlogBytesMax = 1_000
      channel.send([UInt8](repeating: 0, count: 1_001))
    }
    guard case .backlog = log.end() else {
      Issue.record("not given up")
      return
    }
    #expect(pipe.takeNews().ending == .closed)
    stop()
  }
}
