import CLinux
import Foundation

/// The `weir` command: picks the subcommand, reads its arguments, runs it.
package enum WeirProgram {
  static let commands: [any Subcommand.Type] = [
    ServeCommand.self, CertsCommand.self, RegisterCommand.self, DeviceCommand.self, SendCommand.self,
    BulkCommand.self, LoadCommand.self, ListenCommand.self, DemoCommand.self, ProjectCommand.self,
    KeyCommand.self, TokenCommand.self, TopicCommand.self, UserCommand.self, GroupCommand.self,
    MigrateCommand.self, RebalanceCommand.self,
    StreamCommand.self,
    FaultCommand.self,
  ]
  static let version = "0.1.0"

  /// Runs one command line and gives the exit code.
  ///
  /// - Parameter words: Without the program's name.
  package static func run(_ words: [String], environment: [String: String]) async -> Int32 {
    shim_line_buffer_stdout()
    let console = Console(isJSON: words.contains("--json"))
    guard let name = words.first, name != "--help", name != "help" else {
      if let topic = words.dropFirst().first, let command = commands.first(where: { $0.name == topic }) {
        console.result(Help.text(of: command))
      } else {
        console.result(Help.overview(commands))
      }
      return words.isEmpty ? ExitCode.wrongUsage.rawValue : ExitCode.done.rawValue
    }
    if name == "version" || name == "--version" {
      console.result("weir \(version)")
      return 0
    }
    guard let command = commands.first(where: { $0.name == name }) else {
      let near = commands.map { $0.name }.first { Arguments.distance($0, name) <= 2 }
      console.say(
        "weir: there is no command \"\(name)\"." + (near.map { " Did you mean \($0)?" } ?? "")
          + " See weir --help.")
      return ExitCode.wrongUsage.rawValue
    }
    let rest = Array(words.dropFirst())
    if rest.contains("--help") {
      console.result(Help.text(of: command))
      return 0
    }
    return await run(command, rest, environment, console).rawValue
  }

  private static func run(
    _ command: any Subcommand.Type, _ words: [String], _ environment: [String: String], _ console: Console
  ) async -> ExitCode {
    do {
      let flags = command.flags + CommonFlags.all
      let first = try Arguments(
        words, flags: flags, positionalMax: command.positionalMax, environment: environment)
      let named = first.text("config")
      let file = try SettingsFile(path: named ?? "weir.json", isRequired: named != nil)
      let arguments = try Arguments(
        words, flags: flags, positionalMax: command.positionalMax, environment: environment, file: file)
      return try await command.init(arguments).run(console)
    } catch let fault as UsageFault {
      console.say("weir \(command.name): \(fault.message) See weir \(command.name) --help.")
      return .wrongUsage
    } catch let fault as CommandFault {
      console.say("weir \(command.name): \(fault.description)")
      return fault.code
    } catch {
      console.say("weir \(command.name): \(error)")
      return .cannotConnect
    }
  }
}

/// What `--help` prints.
enum Help {
  static func overview(_ commands: [any Subcommand.Type]) -> String {
    var text = """
      weir: a self-hosted upstream–downstream connection server that speaks the protocols of
      Firebase Cloud Messaging.

      Usage: weir COMMAND [flags]

      Commands:

      """
    for command in commands {
      text += "  " + command.name.padding(toLength: 10, withPad: " ", startingAt: 0) + command.summary + "\n"
    }
    text += """

      weir COMMAND --help shows a command's flags and examples. Settings come from flags, then from the
      environment (WEIR_XMPP_PORT=5236), then from weir.json, then from defaults.
      Exit codes: 0 done, 1 some messages did not succeed, 2 wrong usage, 3 cannot connect or log in.
      """
    return text
  }

  static func text(of command: any Subcommand.Type) -> String {
    let operands = command.operands.isEmpty ? "" : " " + command.operands
    var text = "\(command.summary)\n\nUsage: weir \(command.name)\(operands) [flags]\n\nFlags:\n"
    let flags = command.flags + CommonFlags.all
    let heads = flags.map { "  --\($0.name)" + ($0.value.map { " " + $0 } ?? "") }
    let width = min(30, (heads.map(\.count).max() ?? 0) + 2)
    for (flag, head) in zip(flags, heads) {
      text +=
        head.count < width
        ? head.padding(toLength: width, withPad: " ", startingAt: 0) + flag.help + "\n"
        : head + "\n" + String(repeating: " ", count: width) + flag.help + "\n"
    }
    text += "\nExamples:\n" + command.examples.map { "  " + $0 }.joined(separator: "\n")
    return text
  }
}
