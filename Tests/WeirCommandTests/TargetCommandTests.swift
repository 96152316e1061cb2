import PushModel
import Testing

@testable import WeirCommand

@Suite struct TargetCommandTests {
  private func arguments(_ words: [String], _ command: any Subcommand.Type) throws -> Arguments {
    try Arguments(
      words, flags: command.flags + CommonFlags.all, positionalMax: command.positionalMax, environment: [:])
  }

  @Test func aTokenThatBeginsWithADashIsNoFlag() throws {
    let text = RegistrationToken(random: Array(0..<48)).text
    for token in ["-" + text.dropFirst(), "--" + text.dropFirst(2)] {
      #expect(try arguments(["show", token], TokenCommand.self).positional == ["show", token])
    }
    #expect(throws: UsageFault.self) { try arguments(["show", "-x"], TokenCommand.self) }
    #expect(throws: UsageFault.self) { try arguments(["show", "--xyzzy"], TokenCommand.self) }
  }

  @Test(arguments: [
    ["subscribe", "news"], ["show"], ["fly", "news"], ["list", "--max", "0"],
  ])
  func aTopicCommandSaysWhatIsMissing(_ words: [String]) throws {
    #expect(throws: UsageFault.self) { try TopicCommand(arguments(words, TopicCommand.self)) }
  }

  @Test func topicUserAndGroupCommandsTakeTheirOperands() throws {
    _ = try TopicCommand(arguments(["subscribe", "news", "a", "b", "--project", "demo"], TopicCommand.self))
    _ = try UserCommand(arguments(["badge", "ann", "--set", "0"], UserCommand.self))
    _ = try GroupCommand(arguments(["create", "family", "a", "b"], GroupCommand.self))
    #expect(throws: UsageFault.self) {
      try UserCommand(arguments(["badge", "ann", "--set", "-1"], UserCommand.self))
    }
    #expect(throws: UsageFault.self) { try GroupCommand(arguments(["add", "family"], GroupCommand.self)) }
  }
}
