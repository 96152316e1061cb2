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
  }

  private let state: Mutex<State>
  private let job: String
  private let finished: BulkCheckpoint
  private let refused: @Sendable (Int, String) -> Void
  private let isStopped = Mutex(false)

  /// - Parameters:
  ///   - path: A file, or `-` for standard input.
  ///   - job: Part of made ids: the same for the same input.
  ///   - refused: Told of each line that is no message, with its number and why; it is finished then.
  init(
    path: String, job: String, finished: BulkCheckpoint, refused: @escaping @Sendable (Int, String) -> Void
  ) throws(CommandFault) {
    state = Mutex(State(reader: try LineReader(path: path)))
    self.job = job
    self.finished = finished
    self.refused = refused
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
        switch Self.identify(line, orAs: "\(job)-\(number)") {
        case .success(let (id, line)):
          state.inFlight[id] = number
          var message = PushMessage.json(line)
          message.id = id
          return message
        case .failure(let fault):
          refused(number, fault.message)
          finished.mark(number)
        }
      }
      return nil
    }
  }

  /// The line's message id, and the line with it: the given one is put in when it brings none.
  private static func identify(
    _ line: [UInt8], orAs id: String
  ) -> Result<(String, [UInt8]), UsageFault> {
    guard let value = try? JSONValue(parsing: line), let members = value.members else {
      return .failure(UsageFault(message: "not a JSON object"))
    }
    guard let own = value["message_id"] else {
      // The opening brace is the first character that is no white space.
      let brace = line.firstIndex(of: UInt8(ascii: "{")) ?? 0
      let member = "\"message_id\":\(JSONValue.string(id).text)" + (members.isEmpty ? "" : ",")
      return .success((id, Array(line[...brace]) + Array(member.utf8) + Array(line[(brace + 1)...])))
    }
    guard let text = own.string, !text.isEmpty else {
      return .failure(UsageFault(message: "message_id must be a string that is not empty"))
    }
    return .success((text, line))
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
