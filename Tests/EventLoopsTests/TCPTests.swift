import EventLoops
import Glibc
import Seams
import Testing

/// Gathers what a stream hears.
// Sendable by argument: `onBytes` is set and called on the stream's loop alone.
final class StreamLog: TCPStreamDelegate, @unchecked Sendable {
  struct Seen {
    var bytes: [UInt8] = []
    var ends: [StreamEnd] = []
    var writables = 0
  }
  let seen = Watched(Seen())
  var onBytes: ((UnsafeRawBufferPointer) -> Void)?

  func received(_ bytes: UnsafeRawBufferPointer) {
    seen.update { $0.bytes.append(contentsOf: bytes) }
    onBytes?(bytes)
  }
  func ended(_ reason: StreamEnd) { seen.update { $0.ends.append(reason) } }
  func writable() { seen.update { $0.writables += 1 } }
}

/// Two loops, a listener on the first, streams connected between them.
final class Pair {
  let server = EventLoop(name: "server")
  let client = EventLoop(name: "client")
  let port: UInt16

  init(accepted: @escaping @Sendable (AcceptedSocket, EventLoop) throws -> Void) throws {
    let socket = try ListeningSocket(host: "127.0.0.1", port: 0)
    port = socket.port
    try server.start()
    try client.start()
    let server = server
    server.submit {
      _ = try? TCPListener(socket, on: server, accepted: { try? accepted($0, server) })
    }
  }

  func connect(_ connected: @escaping @Sendable (TCPStream) -> Void) {
    let client = client
    let port = port
    client.submit {
      TCPConnector.connect(host: "127.0.0.1", port: port, timeout: .seconds(5), on: client) {
        if case .success(let stream) = $0 { connected(stream) }
      }
    }
  }

  func stop() {
    client.stop()
    server.stop()
  }
}

/// Sends back what comes.
final class Echo: TCPStreamDelegate {
  let stream: TCPStream
  init(_ stream: TCPStream) {
    self.stream = stream
    stream.delegate = self
    stream.resumeReading()
  }
  func received(_ bytes: UnsafeRawBufferPointer) { stream.write(bytes) }
  func ended(_ reason: StreamEnd) { stream.close() }
  func writable() {}
}

struct TCPTests {
  @Test func bytesComeBackFromAnEcho() throws {
    let pair = try Pair { connection, loop in
      _ = Echo(try TCPStream(adopting: connection.descriptor, peer: connection.peer, on: loop))
    }
    defer { pair.stop() }
    let log = Watched<[UInt8]>([])
    pair.connect { stream in
      let delegate = StreamLog()
      delegate.onBytes = { bytes in log.update { $0.append(contentsOf: bytes) } }
      stream.delegate = delegate
      stream.resumeReading()
      Array("hello".utf8).withUnsafeBytes { stream.write($0) }
    }
    #expect(log.wait { $0 == Array("hello".utf8) })
  }

  @Test func theAcceptedSideKnowsItsPeer() throws {
    let peers = Watched<[PeerAddress]>([])
    let pair = try Pair { connection, loop in
      let stream = try TCPStream(adopting: connection.descriptor, on: loop)
      peers.update { $0 += [connection.peer, stream.peer].compactMap { $0 } }
    }
    defer { pair.stop() }
    pair.connect { _ in }
    #expect(peers.wait { $0.count == 2 })
    let found = peers.current
    #expect(found.first == found.last)
    #expect(found.first?.host == "127.0.0.1")
    #expect(found.first?.isLoopback == true)
    #expect(found.first?.description.hasPrefix("127.0.0.1:") == true)
  }

  /// One address has 28,000 ports; a load test with more devices comes from several.
  @Test func connectionsToThisMachineComeFromSeveralAddressesInTurn() throws {
    let peers = Watched<[String]>([])
    let pair = try Pair { connection, loop in
      let stream = try TCPStream(adopting: connection.descriptor, on: loop)
      peers.update { $0.append(stream.peer?.host ?? "") }
    }
    defer { pair.stop() }
    pair.client.submit { [client = pair.client] in client.loopbackSources = 3 }
    for _ in 0..<7 { pair.connect { _ in } }
    #expect(peers.wait { $0.count == 7 })
    let times = Dictionary(grouping: peers.current, by: \.self).mapValues(\.count)
    #expect(times == ["127.0.0.1": 3, "127.0.0.2": 2, "127.0.0.3": 2])
  }

  /// Many peers with something to say at once make several rounds, so that answers leave between them.
  @Test func aLongRoundEndsBeforeEverybodyWasRead() throws {
    enum Step { case read, roundEnd }
    let count = 64
    let steps = Watched<[Step]>([])
    let held = Watched<[TCPStreamHolder]>([])
    let pair = try Pair { connection, loop in
      let stream = try TCPStream(adopting: connection.descriptor, on: loop)
      let slow = StreamLog()
      slow.onBytes = { _ in
        let machine = SystemTime()
        let begin = machine.moment
        while machine.moment < begin + .milliseconds(3) {}
        steps.update { $0.append(.read) }
      }
      stream.delegate = slow
      held.update { $0.append(TCPStreamHolder(stream, loop)) }
    }
    defer { pair.stop() }
    let written = Watched(0)
    for _ in 0..<count {
      pair.connect { stream in
        Array("x".utf8).withUnsafeBytes { stream.write($0) }
        written.update { $0 += 1 }
      }
    }
    #expect(held.wait { $0.count == count } && written.wait { $0 == count })
    let server = pair.server
    // In one job, so that all of them are found readable by one look.
    server.submit {
      server.onRoundEnd { steps.update { $0.append(.roundEnd) } }
      for holder in held.current { holder.resumeReading() }
    }
    #expect(steps.wait { $0.filter { $0 == .read }.count == count })
    let seen = steps.current
    let first = try #require(seen.firstIndex(of: .read))
    let last = try #require(seen.lastIndex(of: .read))
    // 64 × 3 ms in rounds of little more than 10 ms.
    #expect(seen[first...last].filter { $0 == .roundEnd }.count >= 3)
  }

  @Test func aSlowReaderMakesAQueueThatDrainsInOrder() throws {
    let size = 4 << 20
    let gate = Watched<TCPStreamHolder?>(nil)
    let received = StreamLog()
    let pair = try Pair { connection, loop in
      let stream = try TCPStream(adopting: connection.descriptor, on: loop)
      stream.delegate = received
      gate.update { $0 = TCPStreamHolder(stream, loop) }
    }
    defer { pair.stop() }
    let queued = Watched<Int?>(nil)
    let sender = StreamLog()
    pair.connect { stream in
      stream.delegate = sender
      stream.setSendBuffer(bytes: 64 * 1024)
      let bytes = pattern(size)
      bytes.withUnsafeBytes {
        stream.write(UnsafeRawBufferPointer(rebasing: $0[..<(size / 2)]))
        stream.write(UnsafeRawBufferPointer(rebasing: $0[(size / 2)...]))
      }
      queued.update { $0 = stream.queuedBytes }
      stream.finishWriting()
    }
    #expect(queued.wait { $0 != nil })
    #expect((queued.current ?? 0) > 0)
    #expect((queued.current ?? 0) < size)
    #expect(gate.wait { $0 != nil })
    #expect(received.seen.current.bytes.isEmpty)
    gate.current?.onLoop { $0.resumeReading() }
    #expect(received.seen.wait { $0.ends == [.endOfInput] })
    let bytes = received.seen.current.bytes
    #expect(bytes.count == size)
    #expect(isSame(bytes, pattern(size)))
    #expect(sender.seen.wait { $0.writables == 1 })
  }

  @Test func aLoudPeerGetsABoundedShareOfARound() throws {
    let shares = Watched<[UInt64: Int]>([:])
    let total = 8 << 20
    let pair = try Pair { connection, loop in
      let stream = try TCPStream(adopting: connection.descriptor, on: loop)
      let log = StreamLog()
      log.onBytes = { bytes in
        let count = bytes.count
        shares.update { $0[loop.statistics.rounds, default: 0] += count }
      }
      stream.delegate = log
      // Let the peer fill what the system takes first.
      loop.after(.milliseconds(50)) { stream.resumeReading() }
    }
    defer { pair.stop() }
    pair.connect { stream in
      [UInt8](repeating: 5, count: total).withUnsafeBytes { stream.write($0) }
    }
    #expect(shares.wait { $0.values.reduce(0, +) == total })
    #expect((shares.current.values.max() ?? 0) <= 4 * EventLoop.receiveBytesMax)
  }

  @Test func addressesOfVersionSixAreSpokenToo() throws {
    guard let socket = try? ListeningSocket(host: "::1", port: 0) else { return }
    let loop = EventLoop(name: "six")
    try loop.start()
    defer { loop.stop() }
    let port = socket.port
    let peers = Watched<[PeerAddress]>([])
    loop.submit {
      _ = try? TCPListener(
        socket, on: loop,
        accepted: { connection in
          peers.update { $0 += [connection.peer].compactMap { $0 } }
          connection.discard()
        })
      TCPConnector.connect(host: "::1", port: port, timeout: .seconds(5), on: loop) { _ in }
    }
    #expect(peers.wait { $0.count == 1 })
    #expect(peers.current.first?.host == "::1")
    #expect(peers.current.first?.isLoopback == true)
    #expect(peers.current.first?.description.hasPrefix("[::1]:") == true)
  }

  @Test func aReadPauseHoldsWithinTheCallback() throws {
    let holder = Watched<TCPStreamHolder?>(nil)
    let log = StreamLog()
    let pair = try Pair { connection, loop in
      let stream = try TCPStream(adopting: connection.descriptor, on: loop)
      log.onBytes = { [weak stream] _ in stream?.pauseReading() }
      stream.delegate = log
      stream.resumeReading()
      holder.update { $0 = TCPStreamHolder(stream, loop) }
    }
    defer { pair.stop() }
    pair.connect { stream in
      let bytes = [UInt8](repeating: 1, count: 200 * 1024)
      bytes.withUnsafeBytes { stream.write($0) }
    }
    #expect(log.seen.wait { !$0.bytes.isEmpty })
    #expect(log.seen.current.bytes.count <= EventLoop.receiveBytesMax)
    for _ in 0..<400 where log.seen.current.bytes.count < 200 * 1024 {
      let before = log.seen.current.bytes.count
      holder.current?.onLoop { $0.resumeReading() }
      #expect(log.seen.wait { $0.bytes.count > before })
    }
    #expect(log.seen.current.bytes.count == 200 * 1024)
  }

  @Test func aResetIsAFaultAndCloseIsIdempotent() throws {
    let log = StreamLog()
    let pair = try Pair { connection, loop in
      let stream = try TCPStream(adopting: connection.descriptor, on: loop)
      stream.delegate = log
      stream.resumeReading()
    }
    defer { pair.stop() }
    pair.connect { stream in
      stream.closeReset()
      stream.close()
      stream.close()
      #expect(!stream.isOpen)
      #expect(stream.detach() == nil)
    }
    #expect(log.seen.wait { !$0.ends.isEmpty })
    guard case .fault(let fault)? = log.seen.current.ends.first else {
      Issue.record("expected a fault, got \(log.seen.current.ends)")
      return
    }
    #expect(fault.operation == .read)
    #expect(fault.description.contains("reset"))
  }

  @Test func writingToAPeerThatLeftEndsTheStreamOnce() throws {
    let log = StreamLog()
    let isClosed = Watched()
    let pair = try Pair { connection, loop in
      let stream = try TCPStream(adopting: connection.descriptor, on: loop)
      let server = StreamLog()
      server.onBytes = { [unowned stream] _ in
        stream.closeReset()
        isClosed.raise()
      }
      stream.delegate = server
      stream.resumeReading()
    }
    defer { pair.stop() }
    let holder = Watched<TCPStreamHolder?>(nil)
    let client = pair.client
    pair.connect { stream in
      stream.delegate = log
      [UInt8(1)].withUnsafeBytes { stream.write($0) }
      holder.update { $0 = TCPStreamHolder(stream, client) }
    }
    try #require(isClosed.wait())
    try #require(holder.wait { $0 != nil })
    for _ in 0..<1_000 where log.seen.current.ends.isEmpty {
      let isWritten = Watched()
      holder.current?.onLoop { stream in
        [UInt8(1)].withUnsafeBytes {
          stream.write($0)
          stream.write($0)
        }
        isWritten.raise()
      }
      try #require(isWritten.wait())
    }
    #expect(log.seen.wait { $0.ends.count == 1 })
  }

  @Test func aRefusedConnectionIsReportedAsSuch() throws {
    let socket = try ListeningSocket(host: "127.0.0.1", port: 0)
    let port = socket.port
    withExtendedLifetime(socket) {}
    let result = try connect("127.0.0.1", unusedPort(not: port))
    guard case .failure(let fault) = result else {
      Issue.record("connected")
      return
    }
    #expect(fault.isRefused)
  }

  @Test func aNameIsResolvedAndItsAddressesTried() throws {
    // The listener has IPv4 alone: with ::1 first in the answer the second address must be tried.
    let pair = try Pair { connection, _ in connection.discard() }
    defer { pair.stop() }
    let result = try connect("localhost", pair.port)
    guard case .success = result else {
      Issue.record("\(result)")
      return
    }
  }

  @Test func anUnknownNameIsAFault() throws {
    guard case .failure(let fault) = try connect("no-such-host.invalid", 1) else {
      Issue.record("connected")
      return
    }
    #expect(fault.operation == .resolve)
  }

  @Test func aConnectionAttemptCanBeCancelled() throws {
    let loop = EventLoop(name: "cancel")
    try loop.start()
    defer { loop.stop() }
    let faults = Watched<[NetworkFault]>([])
    loop.submit {
      let connector = TCPConnector.connect(host: "127.0.0.1", port: 9, timeout: .seconds(5), on: loop) {
        if case .failure(let fault) = $0 { faults.update { $0.append(fault) } }
      }
      connector.cancel()
      connector.cancel()
    }
    #expect(faults.wait { $0.count == 1 })
    #expect(faults.current.first?.isCancelled == true)
  }

  @Test func aBacklogThatNeverAnswersTimesOut() throws {
    // A listener of backlog 0 that nobody accepts from: once its queue is full the system drops the request.
    let socket = try ListeningSocket(host: "127.0.0.1", port: 0, backlog: 0)
    let loop = EventLoop(name: "timeout")
    try loop.start()
    defer { loop.stop() }
    let port = socket.port
    let faults = Watched<[NetworkFault]>([])
    loop.submit {
      for _ in 0..<8 {
        TCPConnector.connect(host: "127.0.0.1", port: port, timeout: .milliseconds(100), on: loop) {
          if case .failure(let fault) = $0 { faults.update { $0.append(fault) } }
        }
      }
    }
    #expect(faults.wait { !$0.isEmpty })
    #expect(faults.current.first?.isTimeout == true)
    withExtendedLifetime(socket) {}
  }

  @Test func aTakenPortIsAFault() throws {
    let first = try ListeningSocket(host: "127.0.0.1", port: 0)
    #expect(throws: NetworkFault.self) { try ListeningSocket(host: "127.0.0.1", port: first.port) }
    withExtendedLifetime(first) {}
  }

  @Test func loopsCanShareAPort() throws {
    let first = try ListeningSocket(host: "127.0.0.1", port: 0, isShared: true)
    let second = try ListeningSocket(host: "127.0.0.1", port: first.port, isShared: true)
    #expect(first.port == second.port)
  }

  @Test func oneListenerSpreadsConnectionsOverLoops() throws {
    let loops = (0..<3).map { EventLoop(name: "loop-\($0)") }
    for loop in loops { try loop.start() }
    defer { for loop in loops { loop.stop() } }
    let socket = try ListeningSocket(host: "localhost", port: 0)
    let port = socket.port
    let names = Watched<[String]>([])
    let first = try #require(loops.first)
    first.submit {
      _ = try? TCPListener(
        socket, on: first, spreadingOver: loops,
        accepted: { connection, loop in
          names.update { $0.append(loop.isCurrent ? loop.name : "wrong thread") }
          connection.discard()
        })
      for _ in 0..<6 {
        TCPConnector.connect(host: "127.0.0.1", port: port, timeout: .seconds(5), on: first) { _ in }
      }
    }
    #expect(names.wait { $0.count == 6 })
    #expect(names.current.sorted() == ["loop-0", "loop-0", "loop-1", "loop-1", "loop-2", "loop-2"])
  }

  @Test func stoppingALoopTellsItsOpenStreams() throws {
    let log = StreamLog()
    let isOpen = Watched()
    let pair = try Pair { connection, loop in
      let stream = try TCPStream(adopting: connection.descriptor, on: loop)
      stream.delegate = log
      stream.resumeReading()
      isOpen.raise()
    }
    let clientLog = StreamLog()
    pair.connect { stream in
      stream.delegate = clientLog
      stream.resumeReading()
    }
    #expect(isOpen.wait())
    pair.server.stop()
    #expect(log.seen.current.ends == [.loopStopped])
    #expect(clientLog.seen.wait { !$0.ends.isEmpty })
    pair.stop()
  }

  @Test func aStreamThatMovesBetweenLoopsUnderTrafficLosesNothing() throws {
    let total = 3 << 20
    let expected = pattern(total)
    let loops = (0..<2).map { EventLoop(name: "mover-\($0)") }
    for loop in loops { try loop.start() }
    defer { for loop in loops { loop.stop() } }
    let mover = Mover(loops: loops)
    let pair = try Pair { connection, _ in
      let loop = mover.loops[0]
      loop.submit { mover.adopt(DetachedSocket(descriptor: connection.descriptor, unsent: []), on: loop) }
    }
    defer { pair.stop() }
    let log = StreamLog()
    pair.connect { stream in
      stream.delegate = log
      stream.resumeReading()
      expected.withUnsafeBytes { stream.write($0) }
    }
    #expect(log.seen.wait(within: 60) { $0.bytes.count == total })
    #expect(isSame(log.seen.current.bytes, expected))
    #expect(mover.moves.current > 3)
  }

  @Test func acceptingPausesWhileThereAreNoDescriptorsAndGoesOnAfter() throws {
    let loop = EventLoop(name: "emfile")
    try loop.start()
    defer { loop.stop() }
    let socket = try ListeningSocket(host: "127.0.0.1", port: 0)
    let port = socket.port
    let faults = Watched<[NetworkFault]>([])
    let accepted = Watched(0)
    loop.submit {
      var attempts = 0
      _ = try? TCPListener(
        socket, on: loop,
        accepted: { connection in
          connection.discard()
          accepted.update { $0 += 1 }
        },
        troubled: { fault in faults.update { $0.append(fault) } },
        accepting: { descriptor in
          attempts += 1
          if attempts == 2 { return .failure(NetworkFault(.accept, code: -ECONNABORTED)) }
          if attempts == 1 || attempts == 3 { return .failure(NetworkFault(.accept, code: -EMFILE)) }
          return acceptNext(descriptor)
        })
      TCPConnector.connect(host: "127.0.0.1", port: port, timeout: .seconds(5), on: loop) { _ in }
    }
    #expect(accepted.wait { $0 == 1 })
    #expect(faults.current.count == 2)
    #expect(faults.current.first?.description == "accept: too many open files")
  }

  private func connect(_ host: String, _ port: UInt16) throws -> Result<UInt16, NetworkFault> {
    let loop = EventLoop(name: "connect")
    try loop.start()
    defer { loop.stop() }
    let result = Watched<Result<UInt16, NetworkFault>?>(nil)
    loop.submit {
      TCPConnector.connect(host: host, port: port, timeout: .seconds(5), on: loop) { outcome in
        result.update { $0 = outcome.map { $0.peer?.port ?? 0 } }
      }
    }
    #expect(result.wait { $0 != nil })
    return try #require(result.current)
  }

  /// A port that was free a moment ago.
  private func unusedPort(not other: UInt16) throws -> UInt16 {
    try ListeningSocket(host: "127.0.0.1", port: 0).port
  }
}

/// Lets a test call a stream on its loop.
// Sendable by argument: the stream is used on the loop alone.
final class TCPStreamHolder: @unchecked Sendable {
  private let stream: TCPStream
  private let loop: EventLoop

  init(_ stream: TCPStream, _ loop: EventLoop) {
    self.stream = stream
    self.loop = loop
  }

  func onLoop(_ body: @escaping @Sendable (TCPStream) -> Void) {
    loop.submit { body(self.stream) }
  }

  /// To be called on the loop.
  func resumeReading() { stream.resumeReading() }
}

/// An echo that goes to the other loop after every few reads.
final class Mover: Sendable {
  let loops: [EventLoop]
  let moves = Watched(0)

  init(loops: [EventLoop]) { self.loops = loops }

  func adopt(_ socket: DetachedSocket, on loop: EventLoop) {
    guard let stream = try? TCPStream(adopting: socket, peer: nil, on: loop) else { return }
    _ = MovingEcho(stream, loop, self)
  }

  final class MovingEcho: TCPStreamDelegate {
    let stream: TCPStream
    let loop: EventLoop
    let mover: Mover
    var reads = 0

    init(_ stream: TCPStream, _ loop: EventLoop, _ mover: Mover) {
      self.stream = stream
      self.loop = loop
      self.mover = mover
      stream.delegate = self
      stream.resumeReading()
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
      stream.write(bytes)
      reads += 1
      guard reads == 4, let socket = stream.detach() else { return }
      mover.moves.update { $0 += 1 }
      let mover = mover
      let next = mover.loops[loop === mover.loops[0] ? 1 : 0]
      if !next.submit({ mover.adopt(socket, on: next) }) { socket.discard() }
    }
    func ended(_ reason: StreamEnd) { stream.close() }
    func writable() {}
  }
}

/// Bytes that differ by place, made fast: a run of prime length over and over.
func pattern(_ count: Int) -> [UInt8] {
  let run = (0..<8_191).map { UInt8(truncatingIfNeeded: $0 &* 131 >> 5) }
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count + run.count)
  while bytes.count < count { bytes += run }
  bytes.removeLast(bytes.count - count)
  return bytes
}
