import CLinux
import Glibc
import Simulator

/// Simulates a server, its clients and their network on one virtual clock, one seed after the other.
@main
enum Simulate {
  static let help = """
    simulate: runs the production cores, drivers and the in-memory store on a virtual clock, from one seed each.

    usage: simulate [--seeds FIRST...LAST] [--seed N] [options]

      --seeds A...B   seeds to run, default 1...100; each is run twice, in two processes, and must give one hash
      --seed N        one seed
      --nodes N       nodes that share a store, 1 to 8; 1 is a server with a store of its own.
                      Without it the seed decides: one in half of them, else 2 to 5
      --once          run each seed once
      --jobs N        processes side by side, default 2
      --trace         with --seed: print everything that happens, with the virtual time
      --canary NAME   put a deliberate fault in: \(Canary.allCases.map(\.rawValue).joined(separator: ", "));
                      a canary's run is good when a seed catches it
      --json          one JSON line for each seed and one for all
      --help

    exit codes: 0 every seed kept to the contract (with --canary: it was caught), 1 not so, 2 wrong usage

    examples:
      simulate --seeds 1...1000
      simulate --seed 42 --trace | less
      simulate --nodes 3 --seeds 1...200
      simulate --canary store-forgets --seeds 1...50
    """

  static func main() {
    shim_line_buffer_stdout()
    let options: Options
    do {
      options = try Options(Array(CommandLine.arguments.dropFirst()))
    } catch {
      complain("simulate: \(error.text)\n\(help)")
      exit(2)
    }
    switch options.mode {
    case .help: print(help)
    case .worker(let first, let last, let step): Worker.run(options, first, last, step)
    case .trace(let seed):
      becomeDeterministic()
      let outcome = Simulator.run(
        seed: seed, canary: options.canary, nodes: options.nodes, output: { print($0) })
      print("seed \(seed) hash \(String(outcome.hash, radix: 16))")
      for failure in outcome.failures { print("FAILURE \(failure)") }
      exit(outcome.failures.isEmpty ? 0 : 1)
    case .seeds(let seeds): exit(Runner(options, seeds).run())
    }
  }

  static func complain(_ text: String) {
    let line = text + "\n"
    _ = line.withCString { write(2, $0, strlen($0)) }
  }

  /// Hashes of collections are seeded by each process: runs that are to be the same must share one seed.
  private static func becomeDeterministic() {
    guard getenv("SWIFT_DETERMINISTIC_HASHING") == nil else { return }
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) }
    arguments.append(nil)
    execv("/proc/self/exe", arguments)
  }
}

struct Options {
  enum Mode {
    case help
    case trace(UInt64)
    case seeds(ClosedRange<UInt64>)
    case worker(UInt64, UInt64, UInt64)
  }

  struct Wrong: Error { var text: String }

  var mode = Mode.seeds(1...100)
  var canary: Canary?
  /// Nil: as the seed says.
  var nodes: Int?
  var isJSON = false
  var isOnce = false
  var jobs = 2

  init(_ words: [String]) throws(Wrong) {
    var words = words[...]
    var isTrace = false
    while let word = words.popFirst() {
      switch word {
      case "--help", "-h": mode = .help
      case "--json": isJSON = true
      case "--once": isOnce = true
      case "--trace": isTrace = true
      case "--nodes":
        let count = try Self.number(&words, word)
        guard 1...8 ~= count else { throw Wrong(text: "--nodes needs 1 to 8") }
        nodes = Int(count)
      case "--jobs": jobs = Int(clamping: max(1, try Self.number(&words, word)))
      case "--seed":
        let seed = try Self.number(&words, word)
        mode = .seeds(seed...seed)
      case "--seeds": mode = .seeds(try Self.range(&words))
      case "--canary":
        let name = words.popFirst() ?? ""
        guard let found = Canary(rawValue: name) else { throw Wrong(text: "there is no canary \"\(name)\"") }
        canary = found
      case "--worker":
        let first = try Self.number(&words, word)
        let last = try Self.number(&words, word)
        mode = .worker(first, last, max(1, try Self.number(&words, word)))
      default: throw Wrong(text: "unknown argument \(word)")
      }
    }
    if isTrace, case .seeds(let seeds) = mode { mode = .trace(seeds.lowerBound) }
  }

  private static func number(_ words: inout ArraySlice<String>, _ name: String) throws(Wrong) -> UInt64 {
    guard let word = words.popFirst(), let number = UInt64(word) else {
      throw Wrong(text: "\(name) needs a number")
    }
    return number
  }

  private static func range(_ words: inout ArraySlice<String>) throws(Wrong) -> ClosedRange<UInt64> {
    let word = words.popFirst() ?? ""
    let ends = word.split(separator: ".", omittingEmptySubsequences: true).compactMap { UInt64($0) }
    guard ends.count == 2, ends[0] <= ends[1] else {
      throw Wrong(text: "--seeds needs FIRST...LAST, not \"\(word)\"")
    }
    return ends[0]...ends[1]
  }
}
