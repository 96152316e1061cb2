import Stores
import Synchronization
import Testing

@testable import StoreSQLite

@Suite struct WorkThreadTests {
  /// Sizes of the groups that were served.
  private final class Groups: Sendable {
    private let sizes = Mutex<[Int]>([])
    func add(_ size: Int) { sizes.withLock { $0.append(size) } }
    var all: [Int] { sizes.withLock { $0 } }
  }

  private func thread(_ groups: Groups, patience: Duration) throws -> WorkThread<Int> {
    try WorkThread(
      name: "test", queueMax: 1_000, batchMax: .max, patience: patience, make: { 0 },
      serve: { _, jobs in
        groups.add(jobs.count)
        for job in jobs { if let answer = try? job.run(0) { answer() } }
      })
  }

  private func job(isPatient: Bool, _ done: @escaping @Sendable () -> Void = {}) -> Job<Int> {
    Job(run: { _ in done }, fail: { _ in }, isPatient: isPatient)
  }

  @Test func patientJobsWaitForOneThatIsNot() async throws {
    let groups = Groups()
    let thread = try thread(groups, patience: .seconds(1_000))
    await withCheckedContinuation { continuation in
      thread.submit(job(isPatient: true) { continuation.resume() })
    }
    // The first goes at once; the next ones share a group, which the urgent one begins.
    for _ in 0..<50 { thread.submit(job(isPatient: true)) }
    await withCheckedContinuation { continuation in
      thread.submit(job(isPatient: false) { continuation.resume() })
    }
    #expect(groups.all == [1, 51])
    await withCheckedContinuation { continuation in thread.close { continuation.resume() } }
  }

  @Test func patientJobsAreServedWhenTheirTimeIsOver() async throws {
    let groups = Groups()
    let thread = try thread(groups, patience: .milliseconds(20))
    for _ in 0..<3 {
      await withCheckedContinuation { continuation in
        thread.submit(job(isPatient: true) { continuation.resume() })
      }
    }
    #expect(groups.all == [1, 1, 1])
    await withCheckedContinuation { continuation in thread.close { continuation.resume() } }
  }

  @Test func aClosedThreadServesWhatStillWaits() async throws {
    let groups = Groups()
    let thread = try thread(groups, patience: .seconds(1_000))
    await withCheckedContinuation { continuation in
      thread.submit(job(isPatient: true) { continuation.resume() })
    }
    for _ in 0..<5 { thread.submit(job(isPatient: true)) }
    await withCheckedContinuation { continuation in thread.close { continuation.resume() } }
    #expect(groups.all == [1, 5])
  }

  @Test func aQueueThatIsHalfFullIsNotKeptWaiting() async throws {
    let groups = Groups()
    let thread = try thread(groups, patience: .seconds(1_000))
    await withCheckedContinuation { continuation in
      thread.submit(job(isPatient: true) { continuation.resume() })
    }
    await withCheckedContinuation { continuation in
      for _ in 0..<499 { thread.submit(job(isPatient: true)) }
      thread.submit(job(isPatient: true) { continuation.resume() })
    }
    #expect(groups.all == [1, 500])
    await withCheckedContinuation { continuation in thread.close { continuation.resume() } }
  }
}
