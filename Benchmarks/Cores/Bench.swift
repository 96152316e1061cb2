import Glibc

/// Measures the cores, one call at a time, in a release build.
///
/// `weir-bench` runs all, `weir-bench NAME…` those whose name begins so, `--smoke` one short round of each to see
/// that they still run. Times depend on the machine: compare within one run.
@main
struct Bench {
  /// One thing to measure: `body` does it `count` times and gives back something that depends on the work.
  struct Case: Sendable {
    var name: String
    var body: @Sendable (_ count: Int) -> Int
  }

  static let cases = httpCases + telemetryCases

  static func main() {
    var wanted: [String] = []
    var isSmoke = false
    for argument in CommandLine.arguments.dropFirst() {
      if argument == "--smoke" { isSmoke = true } else { wanted.append(argument) }
    }
    let chosen = cases.filter { one in
      wanted.isEmpty || wanted.contains { one.name.hasPrefix($0) }
    }
    guard !chosen.isEmpty else {
      print("weir-bench: no such case; there are: \(cases.map(\.name).joined(separator: ", "))")
      exit(2)
    }
    for one in chosen {
      var count = 1
      var spent = time(one, count)
      let enough: Int64 = isSmoke ? 1_000_000 : 200_000_000
      while spent < enough && count < 1 << 30 {
        count *= 2
        spent = time(one, count)
      }
      let best = isSmoke ? spent : min(spent, time(one, count), time(one, count))
      let each = Double(best) / Double(count)
      print("\(one.name)\t\((each * 10).rounded() / 10) ns\t\(Int(1e9 / each)) a second")
    }
  }

  private static func time(_ one: Case, _ count: Int) -> Int64 {
    let begin = now()
    let result = one.body(count)
    let spent = now() - begin
    // Nobody knows this number, so the work cannot be left out.
    guard result != .min else { fatalError("\(one.name) gave no result") }
    return spent
  }

  private static func now() -> Int64 {
    var spec = timespec()
    clock_gettime(CLOCK_MONOTONIC, &spec)
    return Int64(spec.tv_sec) * 1_000_000_000 + Int64(spec.tv_nsec)
  }
}
