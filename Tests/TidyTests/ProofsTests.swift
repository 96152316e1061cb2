import Foundation
import Testing

/// Documents with tables of promises, whose second column names the tests that show each.
struct ProofsTests {
  private static let documents = ["docs/protocol/proofs.md", "docs/protocol/http-proofs.md"]
  private let repository = Repository.own

  @Test(arguments: documents)
  func everyPromiseHasATestThatExists(_ document: String) throws {
    let proofs = try Proofs(repository)
    var count = 0
    for (number, line) in try repository.text(document).split(
      separator: "\n", omittingEmptySubsequences: false
    )
    .enumerated() where line.hasPrefix("| ") && !line.hasPrefix("|---") {
      let names = Proofs.names(line)
      if Proofs.isHeading(line) { continue }
      count += 1
      #expect(!names.isEmpty, "\(document):\(number + 1) has no proof")
      for name in names where !proofs.has(name) {
        Issue.record("\(document):\(number + 1) names \(name), which is not there")
      }
    }
    #expect(count > 10)
  }

  @Test func aNameThatIsNotThereIsFound() throws {
    let proofs = try Proofs(repository)
    #expect(proofs.has("ProofsTests.aNameThatIsNotThereIsFound"))
    #expect(!proofs.has("ProofsTests.nobodyWroteThis"))
    #expect(!proofs.has("NoTests.aNameThatIsNotThereIsFound"))
    #expect(proofs.has("handshake.py: documented_exchange"))
    #expect(!proofs.has("handshake.py: no_such_case"))
    #expect(!proofs.has("store: nothing of the kind"))
    #expect(Proofs.names("| a `code` | `X.y`, `f.py: z` |") == ["X.y", "f.py: z"])
  }
}

/// What counts as the name of a test, and whether there is one of that name.
private struct Proofs {
  /// Functions by each type that a file of the tests declares or extends.
  private var functions: [String: Set<String>] = [:]
  private var scripts: [String: String] = [:]
  private var conformance = ""

  init(_ repository: Repository) throws {
    for (_, text) in try repository.swiftFiles(under: "Tests") {
      let types = text.matches(of: #/(?:struct|class|extension|enum|actor) (\w+)/#).map { String($0.1) }
      let names = Set(text.matches(of: #/func (\w+)\(/#).map { String($0.1) })
      for type in types { functions[type, default: []].formUnion(names) }
    }
    for path in try repository.files() where path.hasPrefix("Tests/Clients/") && path.hasSuffix(".py") {
      scripts[String(path.dropFirst("Tests/Clients/".count))] = try repository.text(path)
    }
    conformance = try repository.swiftFiles(under: "Sources/StoreConformance").map(\.text).joined()
  }

  /// The names in the last column of a table's row.
  static func names(_ row: some StringProtocol) -> [String] {
    guard let column = row.split(separator: "|").last(where: { !$0.allSatisfy(\.isWhitespace) }) else {
      return []
    }
    return String(column).matches(of: #/`([^`]+)`/#).map { String($0.1) }
  }

  static func isHeading(_ row: some StringProtocol) -> Bool {
    ["Shown by", "Provoked by"].contains { row.contains("| \($0) |") }
  }

  func has(_ name: String) -> Bool {
    if let match = name.wholeMatch(of: #/store: (.+)/#) { return conformance.contains("\"\(match.1)\"") }
    if let match = name.wholeMatch(of: #/([\w\/]+\.py): (\w+)/#) {
      return scripts[String(match.1)]?.contains("def \(match.2)(") ?? false
    }
    if let match = name.wholeMatch(of: #/(\w+)\.(\w+)/#) {
      return functions[String(match.1)]?.contains(String(match.2)) ?? false
    }
    return false
  }
}
