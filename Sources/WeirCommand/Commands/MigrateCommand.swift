import ConnectionServer
import Foundation
import JSONCore

/// The command `weir migrate`.
struct MigrateCommand: Subcommand {
  static let name = "migrate"
  static let summary = "Moves an embedded store into an empty PostgreSQL and compares both ends."
  static let flags = [
    Flag("from", "FILE", "the database file, for instance ./weir-data/weir.sqlite; no server may use it"),
    Flag("to", "URL", "postgres://… as weir serve --store takes it"),
  ]
  static let examples = ["weir migrate --from weir-data/weir.sqlite --to postgres://weir@db/weir"]

  private let file: String
  private let url: String

  init(_ arguments: Arguments) throws(UsageFault) {
    guard let file = arguments.text("from") else { throw UsageFault(message: "--from is missing.") }
    guard let url = arguments.text("to") else { throw UsageFault(message: "--to is missing.") }
    var configuration = ServerConfiguration()
    configuration.store = url
    if let problem = configuration.storeProblem { throw UsageFault(message: "--to: \(problem).") }
    self.file = file
    self.url = url
  }

  func run(_ console: Console) async throws -> ExitCode {
    guard FileManager.default.fileExists(atPath: file) else {
      throw CommandFault(.wrongUsage, "There is no file \(file).")
    }
    do {
      let lines = try StoreMigration(from: file, to: url).run { line in
        if !console.isJSON { console.say("\(line.table): \(line.rows) rows, compared") }
      }
      let rows = lines.reduce(0) { $0 + $1.rows }
      if console.isJSON {
        console.result([
          "rows": .number(rows),
          "tables": .object(
            lines.map {
              .init(
                $0.table, ["rows": .number($0.rows), "sum": .string(String($0.sum, radix: 16))])
            }),
        ])
      } else {
        console.result("Moved \(rows) rows; every table was read again and compared.")
      }
      return .done
    } catch {
      throw CommandFault(.cannotConnect, "\(error)")
    }
  }
}
