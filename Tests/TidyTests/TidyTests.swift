import Foundation
import Testing

struct TidyTests {
  let repository = Repository.own

  @Test func everyImportFollowsAnArrow() throws {
    var modules: Set<String> = []
    for (path, text) in try repository.swiftFiles(under: "Sources") {
      let module = String(path.split(separator: "/")[1])
      modules.insert(module)
      let allowed = try #require(Arrows.allowed[module], "\(module) has no arrows; see Arrows.swift")
      for (name, line) in Rules.imports(text) {
        let isFine =
          allowed.contains(name) || Arrows.toolchain.contains(name)
          || (name == "Foundation" && Arrows.withFoundation.contains(module))
        #expect(isFine, "\(path):\(line) imports \(name)")
      }
    }
    #expect(modules == Set(Arrows.allowed.keys))
  }

  @Test func arrowsPointDownAndNeverBack() throws {
    // Follow them: nobody reaches itself.
    func reached(from module: String) -> Set<String> {
      var found: Set<String> = []
      var open = Arrows.allowed[module] ?? []
      while let next = open.popFirst() {
        if found.insert(next).inserted { open.formUnion(Arrows.allowed[next] ?? []) }
      }
      return found
    }
    for module in Arrows.allowed.keys { #expect(!reached(from: module).contains(module), "\(module)") }
    for client in ["StreamClient", "DeviceRuntime"] {
      #expect(
        reached(from: client).isDisjoint(with: ["ConnectionServer", "Stores", "StoreSQLite"]))
    }
    // An app server keeps nothing on the disk; a device keeps its app's data.
    #expect(!reached(from: "StreamClient").contains("CSQLite"))
    for core in [
      "XMLCore", "XMPPCore", "HTTPCore", "TLSCore", "JSONCore", "PushModel", "DeliveryCore", "PushXMPP",
      "NotificationCore",
    ] {
      #expect(
        reached(from: core).isDisjoint(with: ["EventLoops", "Telemetry", "CUV", "CLinux", "Stores"]),
        "\(core)")
    }
  }

  @Test func nothingIsForced() throws {
    for (path, text) in try repository.swiftFiles(
      under: "Sources", "Tests", "Benchmarks", "Fuzzing", "Examples")
    {
      #expect(Rules.forced(text).isEmpty, "\(path):\(Rules.forced(text)) forces")
    }
  }

  @Test func escapesFromTheCompilerAreExplainedAndFew() throws {
    var count = 0
    for (path, text) in try repository.swiftFiles(under: "Sources") {
      let escapes = Rules.unexplainedEscapes(text)
      count += escapes.count
      #expect(escapes.faults.isEmpty, "\(path):\(escapes.faults) needs a comment that says why it is safe")
    }
    // Raise it with an argument in the commit.
    #expect(count <= 40, "\(count) escapes")
  }

  @Test func filesAreShort() throws {
    for (path, text) in try repository.swiftFiles(under: "Sources") {
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false).count
      #expect(lines <= 500, "\(path) has \(lines) lines")
    }
  }

  @Test func nothingIsLeftToDo() throws {
    for path in try repository.files()
    where [".swift", ".md", ".sh", ".py", ".h", ".c"].contains(where: path.hasSuffix) {
      let notes = Rules.notes(try repository.text(path))
      #expect(notes.isEmpty, "\(path):\(notes)")
    }
  }

  @Test func noKeyOrCertificateIsTracked() throws {
    for path in try repository.files() {
      #expect(![".pem", ".key", ".p12", ".sqlite"].contains(where: path.hasSuffix), "\(path)")
      guard let text = try? repository.text(path) else { continue }
      let marker = "-----BEGIN " + "PRIVATE KEY-----\nM"
      #expect(!text.contains(marker), "\(path) holds a private key")
    }
  }

  @Test func commandsInTheDocumentsAreMakeTargets() throws {
    let targets = Rules.makeTargets(in: try repository.text("Makefile"))
    #expect(targets.isSuperset(of: ["run", "test", "check"]))
    for path in try repository.files() where path.hasSuffix(".md") {
      let named = Rules.makeTargets(named: try repository.text(path))
      #expect(named.isSubset(of: targets), "\(path) names \(named.subtracting(targets))")
    }
    #expect(Rules.makeTargets(named: try repository.text("README.md")).isSuperset(of: ["run", "test"]))
  }

  @Test func everyMakeTargetIsExplained() throws {
    let makefile = try repository.text("Makefile")
    for target in Rules.makeTargets(in: makefile) {
      #expect(makefile.contains(try Regex("(?m)^\(target):.*## \\S")), "\(target)")
    }
  }

  @Test func textsNameNoMachine() throws {
    for path in try repository.files()
    where path.hasSuffix(".md") || path.hasSuffix(".swift") && !path.hasPrefix("Tests/TidyTests/") {
      let found = Rules.machinePaths(try repository.text(path))
      #expect(found.isEmpty, "\(path):\(found) names a path of one machine")
    }
  }

  @Test func scriptsStopAtTheFirstFault() throws {
    for path in try repository.files()
    where path.hasPrefix("dev/") && path.hasSuffix(".sh") || path == ".ci/run" {
      #expect(try repository.text(path).contains("\nset -euo pipefail\n"), "\(path)")
      #expect(FileManager.default.isExecutableFile(atPath: repository.root.path + "/" + path), "\(path)")
    }
  }
}
