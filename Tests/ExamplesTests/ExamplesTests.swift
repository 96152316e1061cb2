import Foundation
import TestKit
import Testing

/// The examples as their readers run them: as programs, against a server.
struct ExamplesTests {
  /// No desktop, so that notifications are printed.
  static let noDesktop = ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere/at-all"]

  func run(
    _ program: String, _ arguments: [String], _ environment: [String: String],
    in directory: TemporaryDirectory
  ) async throws -> (code: Int32, text: String) {
    let child = try ChildProcess(
      ServerProcess.findExecutable(program), arguments,
      environment: environment.merging(Self.noDesktop) { $1 }, in: directory.path,
      errors: directory.path + "/errors")
    let output = try await child.waitForExit(within: .seconds(30))
    return (output.code, child.output.current.text)
  }

  func wait(_ child: ChildProcess, for text: String) async throws {
    _ = try await child.output.wait(for: text, within: .seconds(30)) { $0.text.contains(text) ? true : nil }
  }

  @Test func theDatingSampleTellsOfLikesMessagesAndMatches() async throws {
    let server = try await ServerProcess.start()
    let pictures = try await PictureServer.start()
    let directory = try TemporaryDirectory()
    let environment = [
      "WEIR_CREDENTIALS": server.address.credentials, "WEIR_XMPP": "\(server.address.xmpp)",
      "WEIR_HTTPS": "\(server.address.https)",
    ]
    let app = try ChildProcess(
      ServerProcess.findExecutable("dating"), ["app", "ann"],
      environment: environment.merging(Self.noDesktop) { $1 }, in: directory.path,
      errors: directory.path + "/app-errors")
    try await wait(app, for: "ann is ready")
    #expect(try await run("dating", ["like", "ann", "Ben"], environment, in: directory).code == 0)
    try await wait(app, for: "* Ben likes you")
    try await wait(app, for: "badge 1")
    #expect(
      try await run("dating", ["message", "ann", "Ben", "Hi there"], environment, in: directory).code == 0)
    try await wait(app, for: "* New message · Ben\n  Hi there\n  <Reply> <Mute>")
    try await wait(app, for: "badge 2")
    let german = environment.merging(["DATING_LANGUAGE": "de-AT"]) { $1 }
    #expect(
      try await run("dating", ["match", "ann", "Ben", pictures.base + "/jpeg"], german, in: directory).code
        == 0)
    try await wait(app, for: "* Ein Treffer!\n  Du und Ben mögt euch\n  [image/jpeg ")
    try await wait(app, for: "badge 3")
    app.signal(SIGTERM)
    #expect(try await run("dating", [], environment, in: directory).code == 2)
    pictures.stop()
    _ = try await server.terminate()
  }

  @Test func theReminderSampleAsksEachEveningUntilItIsSwitchedOff() async throws {
    let directory = try TemporaryDirectory()
    let place = ["TZ": "Europe/Berlin"]
    func reminder(_ words: String...) async throws -> (code: Int32, text: String) {
      try await run("reminder", words, place, in: directory)
    }
    #expect(try await reminder("status").text == "off\n")
    let on = try await reminder("on", "20:30").text
    let next = try #require(Int(on.filter(\.isNumber)))
    #expect(try await reminder("run", "--until", "\(next - 1)").text.contains("Commit") == false)
    let shown = try await reminder("run", "--until", "\(next)").text
    #expect(shown.contains("* Commit today?\n  A small one counts.\n"))
    // A week without power is one question, not seven.
    let later = try await reminder("run", "--until", "\(next + 7 * 86_400)").text
    #expect(later.components(separatedBy: "Commit today?").count == 2)
    #expect(try await reminder("off").text == "off\n")
    #expect(try await reminder("run", "--until", "\(next + 30 * 86_400)").text.contains("Commit") == false)
  }

  @Test func theReminderSampleLeadsToTheSettingsWhenItIsRefused() async throws {
    let directory = try TemporaryDirectory()
    func reminder(_ words: String...) async throws -> (code: Int32, text: String) {
      try await run("reminder", words, [:], in: directory)
    }
    #expect(try await reminder("deny").text == "denied\n")
    let refused = try await reminder("on")
    #expect(refused.code == 1 && refused.text.contains("reminder settings"))
    #expect(try await reminder("settings").code == 0)
    #expect(try await reminder("on").text.hasPrefix("on, next at"))
    #expect(try await reminder("on", "soon").code == 2)
  }

  @Test func weirDeviceShowsPushesInTheTerminalWhereThereIsNoDesktop() async throws {
    let server = try await ServerProcess.start()
    let directory = try TemporaryDirectory()
    let place = server.address
    let credentials = ["--credentials", place.credentials, "--json"]
    let device = try ChildProcess(
      ServerProcess.findExecutable(),
      [
        "device", "--desktop", "--app-data", directory.path + "/app", "--user", "ann", "--messages", "1",
        "--server", "localhost:\(place.xmpp)", "--https", "localhost:\(place.https)",
      ] + credentials, environment: Self.noDesktop, errors: directory.path + "/device-errors")
    try await wait(device, for: #""kind":"token""#)
    let sent = try await run(
      "weir",
      [
        "send", "--server", "localhost:\(place.xmpp)", "--to", "/users/ann", "--title", "Hello", "--subtitle",
        "from Ben", "--body", "how are you", "--badge", "+1",
      ] + credentials, [:], in: directory)
    #expect(sent.code == 0, "\(sent.text)")
    try await wait(device, for: "* Hello · from Ben")
    #expect(try await device.waitForExit(within: .seconds(20)).code == 0)
    _ = try await server.terminate()
  }
}
