import Bytes
import Foundation
import PushModel
import Seams
import StoreSQLite
import Stores
import Testing

/// Opt-in: `WEIR_BENCH=1 swift test -c release --filter FanoutBenchTests`; `WEIR_SUBSCRIBERS` sets how many.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["WEIR_BENCH"] == "1"), .serialized)
struct FanoutBenchTests {
  @Test func aTopicOfAHundredThousand() async throws {
    let scratch = try Scratch()
    let store = try SQLiteStore(directory: scratch.path)
    let count = ProcessInfo.processInfo.environment["WEIR_SUBSCRIBERS"].flatMap { Int($0) } ?? 100_000
    let (sender, now, time) = (SenderID(1), SystemTime().wall, SystemTime())
    let topic = try #require(TopicName("news"))
    try await crowd(store, count, sender, now)
    let subscribing = time.moment
    for start in stride(from: 0, to: count, by: 1_000) {
      let changes = (start..<min(start + 1_000, count)).map {
        SubscriptionChange(token: Self.token($0), sender: sender, topic: topic, isSubscribed: true)
      }
      #expect(try await store.change(changes, now: now).allSatisfy { $0 == .changed })
    }
    print("subscribing \(count): \(Self.seconds(time, subscribing)) s")
    let before = try await size(store, scratch)
    let job = FanoutJob(
      number: MessageNumber(1 << 40), key: MessageKey(Hash128(high: 1, low: 2)), sender: sender,
      audience: .topic(topic), begun: now, expires: now + .seconds(3_600),
      tail: Array(",\"data\":{\"k\":\"".utf8) + [UInt8](repeating: 120, count: 2_000) + Array("\"}}".utf8))
    let start = time.moment
    try await store.begin(job)
    print("the job is durable (the sender is acked) after \(Self.seconds(time, start) * 1_000) ms")
    var slices: [Double] = []
    while true {
      let sliceStart = time.moment
      let slice = try await store.advance(fanouts: [job.number], max: 200, spares: [], now: now)
      slices.append(Self.seconds(time, sliceStart) * 1_000)
      if slice[0].isDone { break }
    }
    let taken = Self.seconds(time, start)
    slices.sort()
    let grown = try await size(store, scratch) - before
    print(
      """
      \(count) subscribers in \(taken) s (\(Int(Double(count) / taken))/s); a slice of 200 takes \
      \(slices[slices.count / 2]) ms, the slowest \(slices.last ?? 0) ms; \
      \(grown) bytes stored, \(grown / count) a subscriber, payload \(job.tail.count)
      """)
    await store.close()
  }

  private static func token(_ index: Int) -> String { "bench-\(index)" + String(repeating: "t", count: 60) }

  private static func seconds(_ time: SystemTime, _ start: Moment) -> Double {
    Double((time.moment - start).ns) / 1e9
  }

  private func crowd(_ store: SQLiteStore, _ count: Int, _ sender: SenderID, _ now: WallTime) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<count {
        group.addTask {
          _ = try await store.register(
            RegistrationRequest(
              token: Self.token(index), deviceID: "d-\(index)", secretHash: [], sender: sender,
              app: "org.example.app", platform: .linux, user: nil, previousToken: nil), now: now)
        }
        if index >= 1_000 { try await group.next() }
      }
      try await group.waitForAll()
    }
  }

  /// Bytes of the database once the log is copied into it.
  private func size(_ store: SQLiteStore, _ scratch: Scratch) async throws -> Int {
    try await store.pagesUsed() * 4_096
  }
}
