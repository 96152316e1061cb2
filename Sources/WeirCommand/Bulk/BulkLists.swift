import Foundation
import Glibc
import JSONCore
import StreamClient
import Synchronization

/// Files beside a bulk job that its failures and news are appended to.
///
/// What a killed run had written is not written again by the next: lines of dead letters are known by their
/// number, tokens by a hash.
final class BulkLists: Sendable {
  /// Hashes of tokens that are remembered; beyond that one may be listed twice.
  private static let tokensMax = 1_000_000

  private struct State {
    var deadLetters: Appender?
    var unregistered: Appender?
    var canonical: Appender?
    /// Lines that the dead-letter file of an earlier run holds.
    var deadLines: Set<Int> = []
    var tokens: Set<Int> = []
  }
  private let state: Mutex<State>
  /// Whether the messages under way must be kept until they end.
  let needsMessages: Bool

  init(deadLetters: String?, unregistered: String?, canonical: String?) throws(CommandFault) {
    var state = State()
    if let deadLetters {
      if var reader = try? LineReader(path: deadLetters) {
        while let line = reader.next() {
          if let number = (try? JSONValue(parsing: line))?["line"]?.int {
            state.deadLines.insert(Int(number))
          }
        }
      }
      state.deadLetters = try Appender(path: deadLetters)
    }
    for (path, isCanonical) in [(unregistered, false), (canonical, true)] {
      guard let path else { continue }
      if var reader = try? LineReader(path: path) {
        while let line = reader.next(), state.tokens.count < Self.tokensMax {
          state.tokens.insert(String(decoding: line, as: UTF8.self).hashValue)
        }
      }
      let appender = try Appender(path: path)
      if isCanonical { state.canonical = appender } else { state.unregistered = appender }
    }
    needsMessages = deadLetters != nil || unregistered != nil || canonical != nil
    self.state = Mutex(state)
  }

  /// Notes what is to be noted of a message that has ended.
  func note(_ outcome: BulkOutcome, line: Int?, message: [UInt8]?) {
    switch outcome.result {
    case .success(let ack):
      guard let new = ack.canonicalRegistrationID, let old = Self.target(of: message) else { return }
      list("\(old),\(new)") { $0.canonical }
    case .failure(let error):
      if error.nackCode == "DEVICE_UNREGISTERED" || error.nackCode == "BAD_REGISTRATION",
        let token = Self.target(of: message)
      {
        list(token) { $0.unregistered }
      }
      bury(error, line: line, message: message)
    }
  }

  /// Notes a line that is no message.
  func bury(_ error: SendError, line: Int?, message: [UInt8]?) {
    state.withLock { state in
      guard let deadLetters = state.deadLetters, line.map({ !state.deadLines.contains($0 + 1) }) ?? true
      else {
        return
      }
      let text = message.map { String(decoding: $0, as: UTF8.self) }
      let value: JSONValue = [
        "line": line.map { .number($0 + 1) } ?? .null,
        "message_id": error.messageID.map { .string($0) } ?? .null,
        "error": .string(error.nackCode ?? error.code.description),
        "error_description": .string(error.detail), "attempts": .number(error.attempts),
        "message": text.map { text in (try? JSONValue(parsing: text)) ?? .string(text) } ?? .null,
      ]
      deadLetters.add(value.text)
    }
  }

  private func list(_ text: String, _ file: (State) -> Appender?) {
    state.withLock { state in
      guard let appender = file(state), !state.tokens.contains(text.hashValue) else { return }
      if state.tokens.count < Self.tokensMax { state.tokens.insert(text.hashValue) }
      appender.add(text)
    }
  }

  /// Hands all to the system: before the checkpoint says that it is done.
  func flush() throws(CommandFault) {
    let fault: CommandFault? = state.withLock { state in
      do throws(CommandFault) {
        for appender in [state.deadLetters, state.unregistered, state.canonical] { try appender?.flush() }
        return nil
      } catch {
        return error
      }
    }
    if let fault { throw fault }
  }

  private static func target(of message: [UInt8]?) -> String? {
    guard let message, let target = (try? JSONValue(parsing: message))?["to"]?.string,
      !target.hasPrefix("/")
    else { return nil }
    return target
  }
}

/// A file that lines are added to.
///
/// Not for several threads: its owner locks.
final class Appender: @unchecked Sendable {
  // Unchecked: touched with the lock of `BulkLists` held.
  private let descriptor: Int32
  private let path: String
  private var waiting: [UInt8] = []

  init(path: String) throws(CommandFault) {
    self.path = path
    descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
      throw CommandFault(.wrongUsage, "\(path) cannot be written: \(String(cString: strerror(errno)))")
    }
    // A killed run may have left half a line.
    var last: UInt8 = 0x0A
    let reading = open(path, O_RDONLY | O_CLOEXEC)
    if reading >= 0 {
      if lseek(reading, -1, SEEK_END) >= 0 { _ = read(reading, &last, 1) }
      close(reading)
    }
    if last != 0x0A { waiting.append(0x0A) }
  }

  deinit { close(descriptor) }

  func add(_ line: String) {
    waiting.append(contentsOf: line.utf8)
    waiting.append(0x0A)
    if waiting.count > 1 << 16 { try? flush() }
  }

  func flush() throws(CommandFault) {
    while !waiting.isEmpty {
      let count = waiting.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        throw CommandFault(.someFailed, "\(path) cannot be written: \(String(cString: strerror(errno)))")
      }
      waiting.removeFirst(count)
    }
  }
}
