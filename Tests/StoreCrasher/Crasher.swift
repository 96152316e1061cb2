import Bytes
import Glibc
import PushModel
import Seams
import StoreSQLite
import Stores
import Synchronization

/// Writes to a store without end and says on stdout what is durable, until it is killed.
///
/// Lines: `S batch rows device` when a batch of rows is durable, `T number` before a row is settled. Numbers
/// are batch * 16 + index. Arguments: the data directory, the first batch number.
@main
struct Crasher {
  static func main() {
    let arguments = CommandLine.arguments
    guard (3...4).contains(arguments.count), let first = UInt64(arguments[2]) else {
      say("usage: store-crasher DIR FIRST [fanout]")
      exit(2)
    }
    do throws(StoreFault) {
      var options = SQLiteStore.Options(limits: StoreLimits(storedPerDeviceMax: 1_000_000))
      // Often, so that many kills fall into a checkpoint.
      options.checkpointPages = 20
      let store = try SQLiteStore(directory: arguments[1], options: options)
      if arguments.last == "fanout" {
        FanoutLoad(store: store, first: first).start()
      } else {
        Load(store: store, first: first).start()
      }
    } catch {
      say("fault: \(error)")
      exit(1)
    }
    while true { pause() }
  }
}

/// One line in one system call, so that no line is cut by the kill.
func say(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(1, bytes, bytes.count)
}

private final class Load: Sendable {
  private struct Done: Sendable {
    var device: DeviceNumber
    var number: MessageNumber
  }

  private let store: SQLiteStore
  private let next: Mutex<UInt64>
  private let settleable = Mutex<[Done]>([])
  private let now = SystemTime().wall

  init(store: SQLiteStore, first: UInt64) {
    self.store = store
    next = Mutex(first)
  }

  func start() {
    for index in 0..<4 {
      let name = "crash-\(index)"
      let request = RegistrationRequest(
        token: name, deviceID: name, secretHash: [1], sender: SenderID(1), app: "a", platform: .linux,
        user: nil, previousToken: nil)
      store.register(request, now: now) { [self] result in
        guard case .success(let registration) = result else {
          say("fault: \(result)")
          exit(1)
        }
        write(to: registration.device)
      }
    }
  }

  /// A batch for the device; the next one when it is durable.
  private func write(to device: DeviceNumber) {
    let batchNumber = next.withLock { next in
      next += 1
      return next
    }
    let count = batchNumber % 8 + 1
    var batch = WriteBatch()
    for index in 0..<count {
      let number = batchNumber * 16 + index
      batch.enqueue.append(
        StoredMessage(
          number: MessageNumber(number), device: device, sender: SenderID(1), app: "a",
          key: MessageKey(Hash128(high: 0, low: number)), expires: now + .seconds(1_000_000),
          body: [UInt8](repeating: 65, count: Int(number % 1_500))))
    }
    let settled: [Done] = settleable.withLock { list in
      let taken = list.suffix(batchNumber.isMultiple(of: 3) ? 10 : 0)
      list.removeLast(taken.count)
      return Array(taken)
    }
    for done in settled {
      say("T \(done.number.value)")
      batch.settle.append(.init(device: done.device, number: done.number))
    }
    batch.journal = batch.enqueue.map {
      JournalEntry(key: $0.key, sender: $0.sender, device: device, state: .stored, at: now)
    }
    let rows = batch.enqueue
    store.write(batch, now: now) { [self] result in
      guard case .success(let outcome) = result, outcome.enqueue.allSatisfy({ $0 == .stored }) else {
        say("fault: \(result)")
        exit(1)
      }
      say("S \(batchNumber) \(count) \(device.value)")
      settleable.withLock { list in
        for row in rows { list.append(Done(device: device, number: row.number)) }
      }
      write(to: device)
    }
  }
}
