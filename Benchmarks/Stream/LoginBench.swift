import DeviceRuntime
import EventLoops
import Foundation
import Glibc
import LoadGenerator
import Seams
import TLSCore

/// What a device's log-in costs: TCP, TLS 1.3, stream, SASL, binding, and the store's claim.
///
/// All devices connect, a bounded number at once, and leave again, in turns with full handshakes and with resumed ones.
struct LoginBench {
  let loops: Int
  let weir: String
  let devices: Int
  /// Turns of each kind.
  var turns = 3

  /// Connections under way at once.
  private static let underWayMax = 100

  func run() async throws {
    let server = try await ServerUnderTest(loops: loops, weir: weir)
    defer { server.stop() }
    _ = FileLimit.raise()
    let credentials = try await StreamBench.register(devices, at: server)
    print(
      "\(devices) devices log in, \(Self.underWayMax) at once, \(loops) loop(s), generator beside it.\n"
        + "TLS 1.3      log-ins/s   server CPU µs/log-in   generator CPU µs/log-in   p50 ms   p99 ms")
    for _ in 0..<turns {
      for isResumed in [false, true] {
        let crowd = try Crowd(
          credentials, caFile: server.credentials + "/ca.pem", port: server.xmpp, isResumed: isResumed)
        defer { crowd.loop.stop() }
        if isResumed {
          try await crowd.connect(max: 1, count: 1)
          try await crowd.leave()
          try await server.becomeQuiet()
        }
        let before = (server.cpuMicroseconds, try await crowd.processorNs(), ContinuousClock.now)
        let taken = try await crowd.connect(max: Self.underWayMax, count: devices).sorted()
        let time = ContinuousClock.now - before.2
        // A claim that is being made durable belongs to the log-in.
        try await Task.sleep(for: .milliseconds(100))
        let cpu = (server.cpuMicroseconds - before.0) / Double(devices)
        let own = Double(try await crowd.processorNs() - before.1) / 1_000 / Double(devices)
        let seconds = Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18
        let p50 = taken[taken.count / 2], p99 = taken[min(taken.count - 1, taken.count * 99 / 100)]
        print(
          isResumed ? "resumed" : "full   ",
          String(
            format: "%14.0f %22.0f %25.0f %8.1f %8.1f", Double(devices) / seconds, cpu, own,
            Double(p50) / 1e6, Double(p99) / 1e6))
        try await crowd.leave()
        try await server.becomeQuiet()
      }
    }
  }
}

/// Devices on one loop that only log in.
///
/// `@unchecked Sendable`: constants aside, everything is touched on its loop's thread alone.
private final class Crowd: @unchecked Sendable {
  let loop = EventLoop(name: "generator")
  private let credentials: [Device.Credentials]
  private let server: LeanServer
  private let scratch = LeanStream.Scratch()
  private var streams: [LeanStream] = []
  private var taken: [Int64] = []
  private var next = 0
  private var count = 0
  private var completion: ((Result<[Int64], any Error>) -> Void)?

  init(_ credentials: [Device.Credentials], caFile: String, port: UInt16, isResumed: Bool) throws {
    self.credentials = credentials
    var options = TLSClientOptions(trust: .files([caFile]))
    if !isResumed { options.sessionsPerServerMax = 0 }
    server = LeanServer(
      host: "127.0.0.1", port: port, name: "localhost", context: try TLSContext(client: options))
    try loop.start()
  }

  /// Connects the first `count` devices, at most `max` at once.
  ///
  /// - Returns: Nanoseconds from the first packet to the bound stream, one for each.
  @discardableResult
  func connect(max: Int, count: Int) async throws -> [Int64] {
    try await withCheckedThrowingContinuation { continuation in
      loop.submit { [self] in
        completion = { continuation.resume(with: $0) }
        (next, self.count, taken, streams) = (0, min(count, credentials.count), [], [])
        for _ in 0..<min(max, self.count) { connectNext() }
      }
    }
  }

  private func connectNext() {
    guard next < count else { return }
    let device = credentials[next]
    next += 1
    let begun = loop.time.moment
    let stream = LeanStream(
      identity: device.deviceID, password: device.deviceSecret, server: server, scratch: scratch, on: loop)
    stream.ready = { [unowned self] _ in
      taken.append(loop.time.moment.ns - begun.ns)
      connectNext()
      if taken.count == count { end(.success(taken)) }
    }
    stream.failed = { [unowned self] why in end(.failure(BenchFault("a device: \(why)"))) }
    streams.append(stream)
    stream.connect()
  }

  private func end(_ result: Result<[Int64], any Error>) {
    completion?(result)
    completion = nil
  }

  func leave() async throws {
    try await loop.perform { [self] in
      for stream in streams { stream.close() }
      streams = []
    }
  }

  /// Processor time of the loop's thread so far.
  func processorNs() async throws -> Int64 {
    try await loop.perform {
      var time = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
      return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
  }
}
