import Testing

/// Each rule is shown a text that breaks it: a check that cannot fail checks nothing.
struct RulesTests {
  @Test func importsAreFoundInEveryForm() {
    let text = ##"""
      import A
      package import B
      @testable import C
      @preconcurrency public import D
      import struct E.F
        internal import G  // why
      // import H
      let text = #"""
      import I
      """#
      /* import J
      import K */
      """##
    #expect(Rules.imports(text).map(\.module) == ["A", "B", "C", "D", "E", "G"])
    #expect(Rules.imports(text).map(\.line) == [1, 2, 3, 4, 5, 6])
  }

  @Test(arguments: [
    "let a = b!", "a()!.c", "list[0]!", "try! f()", "a as! B", "var a: Int!", "var a: [Int]!", "f(a!, b)",
    "let a = \"\\(b!)\"", "let a: (() -> Void)!", "a?.b!", "let x = `in`!", "x = y! + z", "#\"\\#(b!)\"#",
    "let a = \"b\"!", "f { 1 }!",
  ])
  func forcesAreFound(_ line: String) {
    #expect(Rules.forced("\n" + line) == [2])
  }

  @Test(arguments: [
    "if !a { }", "a != b", "guard !(a || !b) else { return }", "\"wow!\"", "// a!", "/* a! */", "f(!a)",
    "[!a]", "let a = b ? !c : !d", "\"\"\"\na! \\\"\n\"\"\"", "#\"a!\"#", "return !a", "#if !os(Linux)",
    "\"a \\\" b!\"", "x = !y", "\"\\(a) b!\"",
  ])
  func whatIsNotAForceIsLeftAlone(_ line: String) {
    #expect(Rules.forced(line).isEmpty)
  }

  @Test func anEscapeNeedsACommentNearIt() {
    #expect(Rules.unexplainedEscapes("final class A: @unchecked Sendable {\n  let a = 1\n}").faults == [1])
    #expect(
      Rules.unexplainedEscapes("// Safe: guarded by a lock.\nfinal class A: @unchecked Sendable {}").faults
        == [])
    #expect(Rules.unexplainedEscapes("final class A: @unchecked Sendable {\n  // Why.\n}").faults == [])
    #expect(Rules.unexplainedEscapes("let a = 1\nnonisolated(unsafe) var b = 1").faults == [2])
    #expect(Rules.unexplainedEscapes("nonisolated(unsafe) var b = 1  // Set once.").count == 1)
    #expect(Rules.unexplainedEscapes("// @unchecked Sendable").count == 0)
  }

  @Test func notesAreFound() {
    #expect(Rules.notes("a\n// TO" + "DO: b\nFIX" + "ME\ntodo list\nHACK" + "ER") == [2, 3])
  }

  @Test func pathsOfAMachineAreFound() {
    #expect(
      Rules.machinePaths("see /wo" + "rk/plan\n`/ho" + "me/me`\n/xmpp\n./work/x\nhttps://h/home/x") == [1, 2])
  }

  @Test func makeCommandsAreFound() {
    let text =
      "Run `make run` or\n\n```\nmake check-rest\nmake test FILTER=X\n```\nto make sure that we make it.\n"
    #expect(Rules.makeTargets(named: text) == ["run", "check-rest", "test"])
    #expect(Rules.makeTargets(in: "a: b ## c\n\tx: y\nc-d:\nE := f\n") == ["a", "c-d"])
  }
}
