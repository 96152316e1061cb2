import Foundation
import JSONCore
import Synchronization

/// Which lines of a bulk job are finished: all below a mark, and single ones above it.
///
/// Saved whole and by renaming, so that a kill leaves the last state that was saved. Lines finished after it are
/// sent again under the same message id, which the server acks without delivering again.
final class BulkCheckpoint: Sendable {
  struct State: Sendable {
    var below = 0
    var above: Set<Int> = []
  }
  private let state = Mutex(State())
  let path: String?

  /// Reads the file when there is one; nil keeps no file.
  init(path: String?) throws(CommandFault) {
    self.path = path
    guard let path, let data = FileManager.default.contents(atPath: path) else { return }
    guard let saved = try? JSONValue(parsing: Array(data)), let below = saved["finished_below"]?.int else {
      throw CommandFault(.wrongUsage, "\(path) is no checkpoint of a bulk job; delete it to start anew.")
    }
    let above = Set((saved["finished"]?.array ?? []).compactMap { $0.int.map(Int.init) })
    state.withLock { $0 = State(below: Int(below), above: above) }
  }

  func has(_ line: Int) -> Bool { state.withLock { line < $0.below || $0.above.contains(line) } }

  func mark(_ line: Int) {
    state.withLock { state in
      guard line >= state.below else { return }
      state.above.insert(line)
      while state.above.remove(state.below) != nil { state.below += 1 }
    }
  }

  var finishedCount: Int { state.withLock { $0.below + $0.above.count } }

  func save() throws(CommandFault) { try save(snapshot()) }

  func snapshot() -> State { state.withLock { $0 } }

  func save(_ now: State) throws(CommandFault) {
    guard let path else { return }
    let value: JSONValue = [
      "finished_below": .number(now.below), "finished": .array(now.above.sorted().map { .number($0) }),
    ]
    do {
      try Data(value.bytes).write(to: URL(fileURLWithPath: path), options: .atomic)
    } catch {
      throw CommandFault(
        .someFailed, "The checkpoint \(path) cannot be written: \(error.localizedDescription)")
    }
  }
}
