import Foundation
import Glibc
import JSONCore
import StreamClient
import Synchronization

/// The messages of a bulk job, handed to any number of streams, each once.
///
/// They are read as they are asked for, so memory is bounded whatever the length. One without a `message_id`
/// gets one made of the job and its number: the same on every run of the same file, so that the server
/// recognises what an interrupted run had sent already.
final class LineSource: AsyncSequence, Sendable {
  typealias Element = PushMessage

  private struct Started {
    var number: Int
    /// Only when somebody wants it at the end.
    var message: [UInt8]?
  }

  private struct State {
    var input: BulkInput
    var number = 0
    var inFlight: [String: Started] = [:]
  }

  private let state: Mutex<State>
  private let job: String
  private let finished: BulkCheckpoint
  private let pacer: Pacer?
  private let keepsMessages: Bool
  private let refused: @Sendable (Int, String, [UInt8]?) -> Void
  private let isStopped = Mutex(false)

  /// - Parameters:
  ///   - job: Part of made ids: the same for the same input.
  ///   - pacer: When the next message may go; nil for at once.
  ///   - keepsMessages: Whether ``finish(_:)`` gives the message as well.
  ///   - refused: Told of each line that is no message, with its number, why, and the line if it is known; it is
  ///     finished then.
  init(
    _ input: BulkInput, job: String, finished: BulkCheckpoint, pacer: Pacer? = nil,
    keepsMessages: Bool = false,
    refused: @escaping @Sendable (Int, String, [UInt8]?) -> Void
  ) {
    state = Mutex(State(input: input))
    self.job = job
    self.finished = finished
    self.pacer = pacer
    self.keepsMessages = keepsMessages
    self.refused = refused
  }

  /// The next message that is not finished; nil at the end.
  private func take() -> PushMessage? {
    if isStopped.withLock({ $0 }) { return nil }
    return state.withLock { state in
      while let record = state.input.next() {
        let number = state.number
        state.number += 1
        if finished.has(number) { continue }
        if case .success(let line) = record, line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) {
          finished.mark(number)
          continue
        }
        switch record.flatMap({ Self.identify($0, orAs: "\(job)-\(number)") }) {
        case .success(let (id, line)):
          if let other = state.inFlight[id] {
            refuse(number, "message_id repeats that of line \(other.number + 1), which is under way", line)
            continue
          }
          state.inFlight[id] = Started(number: number, message: keepsMessages ? line : nil)
          var message = PushMessage.json(line)
          message.id = id
          return message
        case .failure(let fault): refuse(number, fault.message, try? record.get())
        }
      }
      return nil
    }
  }

  private func refuse(_ number: Int, _ why: String, _ line: [UInt8]?) {
    refused(number, why, line)
    finished.mark(number)
  }

  /// The line's message id, and the line with it: the given one is put in when it brings none.
  static func identify(
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

  /// The line that this id came from, and its message if it was kept; nil for an unknown one.
  ///
  /// It is not finished before ``BulkCheckpoint/mark(_:)`` says so: first what is to be noted of it is noted.
  func finish(_ id: String) -> (line: Int, message: [UInt8]?)? {
    state.withLock { $0.inFlight.removeValue(forKey: id) }.map { ($0.number, $0.message) }
  }

  /// Bytes of the input that were used.
  var bytesRead: Int { state.withLock { $0.input.bytesRead } }

  /// Lines read so far.
  var linesRead: Int { state.withLock { $0.number } }

  func stop() { isStopped.withLock { $0 = true } }

  func makeAsyncIterator() -> Iterator { Iterator(source: self) }

  struct Iterator: AsyncIteratorProtocol {
    let source: LineSource

    mutating func next() async -> PushMessage? {
      guard let message = source.take() else { return nil }
      await source.pacer?.wait()
      return message
    }
  }
}

/// Reads a file line by line, without its line feeds.
struct LineReader: Sendable {
  /// Bytes of a line at most; of a longer one only so many are given.
  static let lineBytesMax = 1 << 20

  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private var offset = 0
  private var searched = 0
  private var isAtEnd = false
  /// The rest of a line that is too long is thrown away.
  private var isDropping = false
  /// Bytes that were given or thrown away.
  private(set) var bytesUsed = 0

  init(path: String) throws(CommandFault) {
    descriptor = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw CommandFault(.wrongUsage, "\(path) cannot be read: \(String(cString: strerror(errno)))")
    }
  }

  mutating func next() -> [UInt8]? {
    while true {
      if let end = buffer[searched...].firstIndex(of: 0x0A) {
        let line = take(upTo: end, skipping: 1)
        if isDropping { isDropping = false } else { return line }
        continue
      }
      searched = buffer.count
      if isDropping {
        _ = take(upTo: buffer.count, skipping: 0)
      } else if buffer.count - offset > Self.lineBytesMax {
        isDropping = true
        return take(upTo: offset + Self.lineBytesMax, skipping: 0)
      }
      guard !isAtEnd else {
        guard offset < buffer.count else { return nil }
        return take(upTo: buffer.count, skipping: 0)
      }
      fill()
    }
  }

  private mutating func take(upTo end: Int, skipping separator: Int) -> [UInt8] {
    let line = Array(buffer[offset..<end])
    offset = end + separator
    searched = max(searched, offset)
    bytesUsed += line.count + separator
    return line
  }

  private mutating func fill() {
    buffer.removeFirst(offset)
    searched -= offset
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
