import Bytes
import Glibc
import JSONCore
import Simulator

/// Runs seeds in worker processes, twice each, and judges them.
///
/// The two runs of a seed are never in one process, so that nothing of a process can hide in the hash; a run that
/// traps ends its worker alone.
final class Runner {
  private let options: Options
  private let seeds: ClosedRange<UInt64>
  private var first: [UInt64: Report] = [:]
  private var secondCount = 0
  private var bad: [UInt64: [String]] = [:]
  private var figures = [Int](repeating: 0, count: Report.names.count)
  private let start = Runner.now()

  init(_ options: Options, _ seeds: ClosedRange<UInt64>) {
    self.options = options
    self.seeds = seeds
  }

  /// - Returns: The exit code.
  func run() -> CInt {
    let jobs = min(options.jobs, seeds.count)
    for pass in 0..<(options.isOnce ? 1 : 2) {
      var workers: [WorkerProcess] = []
      for job in 0..<jobs {
        let offset = UInt64((job + pass) % jobs)
        if let worker = spawn(seeds.lowerBound + offset) { workers.append(worker) }
      }
      collect(&workers, pass)
    }
    return sumUp()
  }

  private func spawn(_ from: UInt64) -> WorkerProcess? {
    guard from <= seeds.upperBound else { return nil }
    var words = ["--worker", String(from), String(seeds.upperBound), String(min(options.jobs, seeds.count))]
    if let canary = options.canary { words += ["--canary", canary.rawValue] }
    if let nodes = options.nodes { words += ["--nodes", String(nodes)] }
    return WorkerProcess(words)
  }

  private func collect(_ workers: inout [WorkerProcess], _ pass: Int) {
    while !workers.isEmpty {
      var polls = workers.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
      poll(&polls, nfds_t(polls.count), -1)
      for index in polls.indices.reversed() where polls[index].revents != 0 {
        let worker = workers[index]
        let isOpen = worker.read()
        for line in worker.takeLines() { take(line, worker, pass) }
        guard !isOpen else { continue }
        workers.remove(at: index)
        let status = worker.wait()
        if let seed = worker.seed {
          bad[seed, default: []].append("the process died: \(status)")
          let step = UInt64(min(options.jobs, seeds.count))
          if let next = spawn(seed + step) { workers.append(next) }
        }
      }
    }
  }

  private func take(_ line: Substring, _ worker: WorkerProcess, _ pass: Int) {
    if line.hasPrefix("begin\t") {
      worker.seed = UInt64(line.dropFirst(6))
      return
    }
    guard let report = Report(line) else { return }
    worker.seed = nil
    if pass == 0 {
      first[report.seed] = report
      for index in figures.indices { figures[index] += report.figures[index] }
      if !report.failures.isEmpty { bad[report.seed] = report.failures }
      if options.isJSON { print(Self.json(report)) }
      let done = first.count
      if !options.isJSON, done.isMultiple(of: 100) { print("\(done) seeds, \(bad.count) bad, \(seconds) s") }
    } else {
      secondCount += 1
      guard let earlier = first[report.seed], earlier.hash != report.hash else { return }
      bad[report.seed, default: []].append(
        "two runs differ: \(String(earlier.hash, radix: 16)) and \(String(report.hash, radix: 16))")
    }
  }

  private func sumUp() -> CInt {
    let caught = bad.values.count { $0.contains { !$0.hasPrefix("two runs differ") } }
    let isGood = options.canary == nil ? bad.isEmpty : caught > 0
    if options.isJSON {
      print(
        """
        {"seeds":\(first.count),"second_runs":\(secondCount),"bad":\(bad.count),"good":\(isGood),\
        "seconds":\(seconds),\(Self.members(figures))}
        """)
      return isGood ? 0 : 1
    }
    for seed in bad.keys.sorted().prefix(options.canary == nil ? 40 : 3) {
      print("seed \(seed): \(first[seed]?.summary ?? "")")
      for failure in bad[seed] ?? [] { print("  \(failure)") }
      let canary = options.canary.map { " --canary \($0.rawValue)" } ?? ""
      let nodes = options.nodes.map { (" --nodes \($0)", " NODES=\($0)") } ?? ("", "")
      print(
        "  replay: simulate --seed \(seed)\(canary)\(nodes.0) --trace    (make simulate SEED=\(seed)\(nodes.1))"
      )
    }
    let sums = zip(Report.names, figures).map { "\($0) \($1)" }.joined(separator: ", ")
    print("\(first.count) seeds, \(secondCount) run again, \(bad.count) bad, \(seconds) s: \(sums)")
    if let canary = options.canary {
      print(
        caught > 0
          ? "the canary \(canary.rawValue) was caught by \(caught) seeds"
          : "the canary \(canary.rawValue) was NOT caught")
    }
    return isGood ? 0 : 1
  }

  private static func json(_ report: Report) -> String {
    var writer = ByteWriter()
    JSONValue.array(report.failures.map { .string($0) }).write(to: &writer)
    let failures = String(decoding: writer.bytes, as: UTF8.self)
    return
      "{\"seed\":\(report.seed),\"hash\":\"\(String(report.hash, radix: 16))\",\(members(report.figures)),"
      + "\"failures\":\(failures)}"
  }

  private static func members(_ figures: [Int]) -> String {
    zip(Report.names, figures).map { "\"\($0)\":\($1)" }.joined(separator: ",")
  }

  private var seconds: Int { Runner.now() - start }

  private static func now() -> Int {
    var spec = timespec()
    clock_gettime(CLOCK_MONOTONIC, &spec)
    return Int(spec.tv_sec)
  }
}

/// A worker and the pipe it talks through.
final class WorkerProcess {
  let descriptor: CInt
  private let id: pid_t
  private var bytes: [UInt8] = []
  /// The seed it is at.
  var seed: UInt64?

  init?(_ words: [String]) {
    var ends: [CInt] = [0, 0]
    guard pipe(&ends) == 0 else { return nil }
    _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_addclose(&actions, ends[1])
    defer { posix_spawn_file_actions_destroy(&actions) }
    var arguments: [UnsafeMutablePointer<CChar>?] = (["simulate"] + words).map { strdup($0) }
    arguments.append(nil)
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    var id: pid_t = 0
    let code = posix_spawn(&id, "/proc/self/exe", &actions, nil, arguments, environ)
    for argument in arguments { free(argument) }
    close(ends[1])
    guard code == 0 else {
      close(ends[0])
      return nil
    }
    self.id = id
    descriptor = ends[0]
  }

  /// - Returns: False at the end.
  func read() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    guard count > 0 else { return count < 0 && errno == EINTR }
    bytes.append(contentsOf: buffer[..<count])
    return true
  }

  func takeLines() -> [Substring] {
    guard let end = bytes.lastIndex(of: 10) else { return [] }
    let text = String(decoding: bytes[..<end], as: UTF8.self)
    bytes.removeFirst(end + 1)
    return text.split(separator: "\n")
  }

  func wait() -> String {
    var status: CInt = 0
    waitpid(id, &status, 0)
    close(descriptor)
    let signal = status & 0x7F
    return signal == 0 ? "exit \(status >> 8 & 0xFF)" : "signal \(signal)"
  }
}
