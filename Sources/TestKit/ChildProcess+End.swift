import CLinux
import Foundation

extension ChildProcess {
  package var isRunning: Bool { output.current.exitCode == nil }

  /// Waits on this thread until the program has ended; for a `defer`, where no task can wait.
  ///
  /// - Returns: False when the time ran out.
  package func blockUntilEnd(within time: Duration) -> Bool {
    guard isRunning else { return true }
    let descriptor = shim_process_descriptor(processID)
    // Nobody is there to be waited for.
    guard descriptor >= 0 else { return true }
    defer { close(descriptor) }
    let end = ContinuousClock.now + time
    var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
      let left = max(.zero, end - ContinuousClock.now)
      let ready = poll(&waited, 1, Int32(clamping: Int64(left / .milliseconds(1))))
      guard ready < 0, errno == EINTR else { return ready > 0 }
    }
  }

  /// Asks the program to end with SIGTERM, and kills it when it has not after `time`.
  ///
  /// - Returns: Whether it ended by itself.
  @discardableResult
  package func end(within time: Duration) -> Bool {
    signal(SIGTERM)
    if blockUntilEnd(within: time) { return true }
    signal(SIGKILL)
    _ = blockUntilEnd(within: .seconds(15))
    return false
  }

  /// Waits until the program, which is `weir serve`, says that it is ready.
  ///
  /// - Throws: ``ServerProcessFailure`` with what it said last when it ended before that, or ``TestTimeout``.
  package func readyServer(within time: Duration = .seconds(30)) async throws -> ServerAddress {
    let address: ServerAddress?
    address = try await output.wait(for: "the ready line", within: time) { output -> ServerAddress?? in
      for line in output.text.split(separator: "\n") {
        if let address = ServerAddress(readyLine: String(line)) { return .some(address) }
      }
      return output.exitCode == nil ? .none : .some(nil)
    }
    guard let address else {
      throw ServerProcessFailure(description: "weir serve ended: \(errorText.suffix(2_000))")
    }
    return address
  }
}
