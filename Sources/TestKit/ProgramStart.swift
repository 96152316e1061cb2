import CLinux
import Foundation
import Seams

/// How a program is started: with what, where, and which files it gets.
struct ProgramStart: Sendable {
  /// A path, relative to where the caller is, or a name that is looked up.
  var path: String
  var arguments: [String]
  var environment: [String: String]
  var directory: String?
  /// File that its standard error is added to.
  var errors: String

  struct Started: Sendable {
    var processID: Int32
    /// Its standard output, to be read without waiting.
    ///
    /// The caller closes it.
    var output: Int32
    /// Readable when it has ended.
    ///
    /// The caller closes it.
    var end: Int32
  }

  /// Starts it, so that it dies with this process whatever happens here.
  ///
  /// Foundation's `Process` is not used: with more than some thousand files open its start reads beyond a buffer,
  /// and what it started outlives a crash of the tests.
  func start() throws -> Started {
    try Starter.shared.run { try spawn() }
  }

  private func spawn() throws -> Started {
    var pipe: [Int32] = [-1, -1]
    try check(pipe2(&pipe, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : errno, "make a pipe for")
    defer { close(pipe[1]) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, pipe[1], 1)
    posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    if let directory { posix_spawn_file_actions_addchdir_np(&actions, directory) }
    posix_spawn_file_actions_addclosefrom_np(&actions, 3)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Signals as a shell would start it.
    var all = sigset_t()
    var none = sigset_t()
    sigfillset(&all)
    sigemptyset(&none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))

    let merged = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let program = path.contains("/") ? URL(fileURLWithPath: path).path : path
    var processID: pid_t = 0
    let fault = withCStrings(["setpriv", "--pdeathsig", "KILL", "--", program] + arguments) { arguments in
      withCStrings(merged.map { "\($0)=\($1)" }) { environment in
        posix_spawn(&processID, "/usr/bin/setpriv", &actions, &attributes, arguments, environment)
      }
    }
    if fault != 0 { close(pipe[0]) }
    try check(fault, "start")
    return Started(processID: processID, output: pipe[0], end: shim_process_descriptor(processID))
  }

  private func check(_ fault: Int32, _ what: String) throws {
    guard fault != 0 else { return }
    throw ServerProcessFailure(description: "Cannot \(what) \(path): \(String(cString: strerror(fault)))")
  }
}

/// Calls `body` with a list of C strings that ends with a null pointer.
private func withCStrings<Result>(
  _ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
  let pointers = texts.map { strdup($0) }
  defer { for pointer in pointers { free(pointer) } }
  return body(pointers + [nil])
}

/// The thread that starts all programs: Linux ends a child that asked for it when the *thread* that made it ends, and
/// those of Swift's pool come and go.
private final class Starter: Sendable {
  static let shared = Starter()
  private let work = Guarded<[@Sendable () -> Void]>([])
  private let wake = DispatchSemaphore(value: 0)

  private init() {
    let thread = Thread { [self] in
      while true {
        wake.wait()
        work.withLock { $0.isEmpty ? nil : $0.removeFirst() }?()
      }
    }
    thread.name = "program-starter"
    thread.start()
  }

  func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) throws -> Value {
    let result = Guarded<Result<Value, any Error>?>(nil)
    let done = DispatchSemaphore(value: 0)
    work.withLock { work in
      work.append {
        let value = Result { try body() }
        result.withLock { $0 = value }
        done.signal()
      }
    }
    wake.signal()
    done.wait()
    guard let value = result.withLock({ $0 }) else {
      throw ServerProcessFailure(description: "The starter thread gave no answer")
    }
    return try value.get()
  }
}
