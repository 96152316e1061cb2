import ConnectionServer
import JSONCore

/// The command `weir rebalance`.
struct RebalanceCommand: Subcommand {
  static let name = "rebalance"
  static let summary = "Spreads devices over another number of databases; stop all nodes first."
  static let flags = [
    Flag("from", "URL", "a database that is in use, as weir serve --store names it; repeated, in that order"),
    Flag("to", "URL", "a database from now on, in the order in which weir serve will name them; repeated"),
  ]
  static let examples = [
    "weir rebalance --from postgres://weir@db1/weir --to postgres://weir@db1/weir --to postgres://weir@db2/weir"
  ]

  private let old: [String]
  private let new: [String]

  init(_ arguments: Arguments) throws(UsageFault) {
    old = arguments.all("from")
    new = arguments.all("to")
    for (name, urls) in [("from", old), ("to", new)] {
      guard !urls.isEmpty else { throw UsageFault(message: "--\(name) is missing.") }
      var configuration = ServerConfiguration()
      configuration.stores = urls
      if let problem = configuration.storeProblem { throw UsageFault(message: "--\(name): \(problem).") }
    }
  }

  func run(_ console: Console) async throws -> ExitCode {
    do {
      let moved = try StoreRebalance(from: old, to: new).run { source, target, count in
        if !console.isJSON { console.say("\(count) devices from \(source) to \(target)") }
      }
      if console.isJSON {
        console.result(["moved": .number(moved)])
      } else {
        console.result("Moved \(moved) devices with all that is theirs.")
      }
      return .done
    } catch {
      throw CommandFault(.cannotConnect, "\(error)")
    }
  }
}
