import Glibc
package import Seams
import Synchronization

/// Turns log calls into lines and writes them, at most `linesMax` a sentence and period.
///
/// What happens to a flood: the surplus lines of one sentence are counted, and its next line that is written
/// carries the count as `suppressed`. A file descriptor that does not take a line at once (a pipe whose reader
/// stands) loses that line rather than holding a loop; ``linesLost`` counts those.
package final class LogSink: Sendable {
  /// The two output forms, one line each.
  package enum Form: String, Sendable, CaseIterable {
    case text, json
  }

  /// Longest line in bytes, line feed included.
  ///
  /// A pipe takes this much in one piece (`PIPE_BUF`).
  package static let lineBytesMax = 4_096

  private struct Allowance {
    var periodStart: Moment
    var linesLeft: Int
    var suppressed: Int
  }

  private let threshold: Atomic<UInt8>
  private let lost = Atomic<UInt64>(0)
  // One entry for each sentence in the program's text, so bounded by it. Keyed by the literal's address.
  private let allowances = Mutex<[UInt: Allowance]>([:])
  private let form: Form
  private let time: any TimeSource
  private let linesMax: Int
  private let period: Duration
  private let output: @Sendable ([UInt8]) -> Bool

  /// - Parameters:
  ///   - threshold: Lowest level written; nil writes none.
  ///   - linesMax: Lines of one sentence a period.
  ///   - output: Gets one whole line with its line feed, at most ``lineBytesMax`` bytes, on the caller's thread;
  ///     answers whether it was taken.
  package init(
    threshold: LogLevel?, form: Form = .text, time: any TimeSource = SystemTime(), linesMax: Int = 50,
    period: Duration = .seconds(10), output: @escaping @Sendable ([UInt8]) -> Bool
  ) {
    self.threshold = Atomic(threshold?.rawValue ?? UInt8.max)
    self.form = form
    self.time = time
    self.linesMax = linesMax
    self.period = period
    self.output = output
  }

  /// A sink on a file descriptor, stderr unless told.
  package convenience init(
    threshold: LogLevel?, form: Form, time: any TimeSource = SystemTime(), descriptor: Int32 = 2
  ) {
    self.init(threshold: threshold, form: form, time: time) { line in
      Self.write(line, to: descriptor)
    }
  }

  /// Lines that the file descriptor did not take.
  package var linesLost: UInt64 { lost.load(ordering: .relaxed) }

  /// Changes the threshold while the server runs.
  package func setThreshold(_ level: LogLevel?) {
    threshold.store(level?.rawValue ?? UInt8.max, ordering: .relaxed)
  }

  package func isOn(_ level: LogLevel) -> Bool {
    level.rawValue >= threshold.load(ordering: .relaxed)
  }

  /// Asks whether a line of this sentence may be written now.
  ///
  /// - Returns: nil for no, else how many were suppressed since the last.
  func admit(_ sentence: StaticString) -> Int? {
    guard sentence.hasPointerRepresentation else { return 0 }
    let key = UInt(bitPattern: sentence.utf8Start)
    let now = time.moment
    return allowances.withLock { allowances in
      var allowance =
        allowances[key] ?? Allowance(periodStart: now, linesLeft: linesMax, suppressed: 0)
      defer { allowances[key] = allowance }
      if now - allowance.periodStart >= period {
        allowance.periodStart = now
        allowance.linesLeft = linesMax
      }
      guard allowance.linesLeft > 0 else {
        allowance.suppressed += 1
        return nil
      }
      allowance.linesLeft -= 1
      let suppressed = allowance.suppressed
      allowance.suppressed = 0
      return suppressed
    }
  }

  func write(
    _ level: LogLevel, _ sentence: StaticString, _ context: LogFields, _ fields: LogFields,
    suppressed: Int
  ) {
    var line = LogLine(form: form, time: time.wall, level: level, sentence: sentence)
    for field in context.entries { line.append(field.name, field.value) }
    for field in fields.entries { line.append(field.name, field.value) }
    if suppressed > 0 { line.append("suppressed", .number(Int64(suppressed))) }
    if !output(line.finish(bytesMax: Self.lineBytesMax)) { lost.wrappingAdd(1, ordering: .relaxed) }
  }

  /// Writes the line whole if the descriptor takes it now.
  private static func write(_ line: [UInt8], to descriptor: Int32) -> Bool {
    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&ready, 1, 0) == 1, ready.revents & Int16(POLLOUT) != 0 else { return false }
    return line.withUnsafeBytes { bytes in
      var offset = 0
      while offset < bytes.count {
        let count = Glibc.write(descriptor, bytes.baseAddress?.advanced(by: offset), bytes.count - offset)
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return false }
        offset += count
      }
      return true
    }
  }
}
