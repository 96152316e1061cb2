import Simulator

@main
enum Simulate {
  static func main() {
    for argument in CommandLine.arguments.dropFirst() {
      guard let seed = UInt64(argument) else { continue }
      let outcome = Simulator.run(seed: seed)
      print(outcome)
    }
  }
}
