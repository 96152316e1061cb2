import Foundation
import Glibc
import JSONCore
import StreamClient
import Synchronization

/// The messages of an NDJSON file, handed to any number of streams, one line once.
///
/// Lines are read as they are asked for, so memory is bounded whatever the length. A line without a `message_id`
/// gets one made of the job and its number: the same on every run of the same file, so that the server
/// recognises what an interrupted run had sent already.
final class LineSource: AsyncSequence, Sendable {
  typealias Element = PushMessage

  private struct State {
    var reader: LineReader
    var number = 0
    var inFlight: [String: Int] = [:]
    var isAtEnd = false
  }

  private let state: Mutex<State>
  private let job: String
  private let finished: BulkCheckpoint
  let isStopped = Mutex(false)

  /// - Parameters:
  ///   - path: A file, or `-` for standard input.
  ///   - job: Part of made ids: the same for the same input.
  init(path: String, job: String, finished: BulkCheckpoint) throws(CommandFault) {
    state = Mutex(State(reader: try LineReader(path: path)))
    self.job = job
    self.finished = finished
  }

  /// The next line that is not finished; nil at the end.
  private func take() -> PushMessage? {
    if isStopped.withLock({ $0 }) { return nil }
    return state.withLock { state in
      while let line = state.reader.next() {
        let number = state.number
        state.number += 1
        if finished.has(number) || line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) {
          finished.mark(number)
          continue
        }
        var message = PushMessage.json(line)
        let id = Self.ownID(line) ?? "\(job)-\(number)"
        message.id = id
        state.inFlight[id] = number
        return message
      }
      state.isAtEnd = true
      return nil
    }
  }

  /// The id that the line brings itself.
  private static func ownID(_ line: [UInt8]) -> String? {
    let hint = Array("\"message_id\"".utf8)
    guard line.firstRange(of: hint) != nil else { return nil }
    return (try? JSONValue(parsing: line))?["message_id"]?.string
  }

  /// The line that this id came from, which is finished now; nil for an unknown one.
  func finish(_ id: String) -> Int? {
    let number = state.withLock { $0.inFlight.removeValue(forKey: id) }
    if let number { finished.mark(number) }
    return number
  }

  /// Lines read so far.
  var linesRead: Int { state.withLock { $0.number } }

  func stop() { isStopped.withLock { $0 = true } }

  func makeAsyncIterator() -> Iterator { Iterator(source: self) }

  struct Iterator: AsyncIteratorProtocol {
    let source: LineSource
    mutating func next() async -> PushMessage? { source.take() }
  }
}

/// Reads a file line by line, without its line feeds.
struct LineReader {
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private var offset = 0
  private var isAtEnd = false

  init(path: String) throws(CommandFault) {
    descriptor = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw CommandFault(.wrongUsage, "\(path) cannot be read: \(String(cString: strerror(errno)))")
    }
  }

  mutating func next() -> [UInt8]? {
    while true {
      if let end = buffer[offset...].firstIndex(of: 0x0A) {
        defer { offset = end + 1 }
        return Array(buffer[offset..<end])
      }
      guard !isAtEnd else {
        guard offset < buffer.count else { return nil }
        defer { offset = buffer.count }
        return Array(buffer[offset...])
      }
      fill()
    }
  }

  private mutating func fill() {
    buffer.removeFirst(offset)
    offset = 0
    let old = buffer.count
    let piece = 256 * 1024
    buffer.append(contentsOf: repeatElement(0, count: piece))
    let count = buffer.withUnsafeMutableBytes { bytes in
      read(descriptor, bytes.baseAddress.map { $0 + old }, piece)
    }
    buffer.removeLast(piece - max(0, count))
    if count <= 0 { isAtEnd = true }
  }
}
