import Foundation
import WeirCommand

@main
struct Weir {
  static func main() async {
    let code = await WeirProgram.run(
      Array(CommandLine.arguments.dropFirst()), environment: ProcessInfo.processInfo.environment)
    exit(code)
  }
}
