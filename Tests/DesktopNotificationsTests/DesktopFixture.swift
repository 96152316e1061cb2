import Foundation
import TestKit
import Testing

@testable import DesktopNotifications

/// A screen without glass (Xvfb), a message bus of its own, and dunst as the program that shows notifications.
final class DesktopFixture: Sendable {
  let directory: TemporaryDirectory
  let display: String
  let bus: String
  private let screen: ChildProcess
  private let daemon: ChildProcess

  init() async throws {
    directory = try TemporaryDirectory()
    let errors = directory.path + "/errors"
    screen = try ChildProcess(
      "/usr/bin/Xvfb", ["-displayfd", "1", "-screen", "0", "640x360x24", "-nolisten", "tcp"], errors: errors)
    display =
      ":"
      + (try await screen.output.wait(for: "a screen", within: .seconds(20)) { output in
        output.text.contains("\n") ? output.text.split(separator: "\n").first.map(String.init) : nil
      })
    let configuration = """
      <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
       "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
      <busconfig><type>session</type><listen>unix:dir=\(directory.path)</listen><auth>EXTERNAL</auth>
      <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
      <allow own="*"/></policy></busconfig>
      """
    try Data(configuration.utf8).write(to: URL(fileURLWithPath: directory.path + "/bus.conf"))
    daemon = try ChildProcess(
      "/usr/bin/dbus-daemon",
      ["--config-file=\(directory.path)/bus.conf", "--nofork", "--print-address=1"], errors: errors)
    bus = try await daemon.output.wait(for: "a bus", within: .seconds(20)) { output in
      output.text.contains("\n") ? output.text.split(separator: "\n").first.map(String.init) : nil
    }
  }

  var environment: [String: String] { ["DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": bus] }

  /// Starts dunst and waits until it answers.
  func startDunst(_ presenter: DesktopPresenter) async throws -> ChildProcess {
    // The menu of actions is answered by a program that takes the last line.
    let menu = directory.path + "/menu"
    try Data("#!/bin/sh\ngrep Write | head -n 1\n".utf8).write(to: URL(fileURLWithPath: menu))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: menu)
    let settings = """
      [global]
        width = 420
        height = 300
        origin = top-left
        offset = 20x20
        padding = 12
        font = DejaVu Sans 12
        markup = full
        format = "<b>%s</b>\\n%b"
        icon_position = left
        min_icon_size = 96
        max_icon_size = 96
        mouse_left_click = do_action
        mouse_middle_click = context
        mouse_right_click = close_current
        dmenu = \(menu)
        show_age_threshold = -1
      [urgency_normal]
        timeout = 0
        background = "#204060"
        foreground = "#ffffff"
      [urgency_low]
        timeout = 0
      """
    try Data(settings.utf8).write(to: URL(fileURLWithPath: directory.path + "/dunstrc"))
    let dunst = try ChildProcess(
      "/usr/bin/dunst", ["-config", directory.path + "/dunstrc"], environment: environment,
      errors: directory.path + "/dunst-errors")
    let deadline = ContinuousClock.now + .seconds(20)
    while true {
      if (try? await presenter.capabilities()) != nil { return dunst }
      guard ContinuousClock.now < deadline else { throw DesktopFault("dunst does not answer") }
      await Task.yield()
    }
  }

  func presenter() throws -> DesktopPresenter {
    try DesktopPresenter(
      DesktopPresenter.Configuration(appName: "Dating", desktopEntry: "org.example.dating", busAddress: bus))
  }

  /// Runs a program on the screen and gives what it prints.
  @discardableResult
  func run(_ program: String, _ arguments: String...) async throws -> String {
    let child = try ChildProcess(
      "/usr/bin/env", [program] + arguments, environment: environment, errors: directory.path + "/run-errors")
    let output = try await child.waitForExit(within: .seconds(20))
    let errors = FileManager.default.contents(atPath: directory.path + "/run-errors") ?? Data()
    try #require(output.code == 0, "\(program) \(arguments): \(String(decoding: errors, as: UTF8.self))")
    return child.output.current.text.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Waits until dunst shows so many.
  func waitUntilShown(_ count: Int) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    var found = ""
    while ContinuousClock.now < deadline {
      found = try await run("dunstctl", "count", "displayed")
      if found == "\(count)" { return }
    }
    Issue.record("\(found) notifications are shown, not \(count)")
  }

  /// A photograph of the screen in `artifacts/`, and how many colours it has.
  func photograph(_ name: String) async throws -> (path: String, colours: Int) {
    let folder = Repository.root + "/artifacts"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let path = folder + "/" + name + ".png"
    try await run("import", "-window", "root", path)
    return (path, Int(try await run("identify", "-format", "%k", path)) ?? 0)
  }

  func stop() {
    daemon.signal(SIGTERM)
    screen.signal(SIGTERM)
  }
}

enum Repository {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path
}
