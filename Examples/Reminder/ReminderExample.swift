import DesktopNotifications
import DeviceRuntime
import Glibc

/// A reminder app without a server: "Commit today?" each evening.
///
///     reminder on [HOUR:MINUTE]   switches the reminder on (20:00)
///     reminder off                switches it off
///     reminder status             says when it comes next
///     reminder run                shows it when it is time
///     reminder deny               as if the user had said no
///     reminder settings           opens what a refused app offers: switches notifications on again
///
/// Its data is in ./reminder-data, or REMINDER_DATA. `reminder run --until SECONDS` shows what is due at that moment
/// (seconds since 1970) and ends: a demonstration that needs no waiting.
@main
struct ReminderExample {
  static func main() async {
    do {
      try await run(Array(CommandLine.arguments.dropFirst()))
    } catch {
      print("reminder: \(error)")
      exit(1)
    }
  }

  static func run(_ words: [String]) async throws {
    let moment = words.count == 3 && words[1] == "--until" ? Int64(words[2]) : nil
    var settings = DeviceRuntime.NotificationCenter.Configuration(
      dataFolder: getenv("REMINDER_DATA").map { String(cString: $0) } ?? "./reminder-data",
      presenter: presenter())
    settings.askUser = { _ in words.first != "deny" }
    if let moment {
      settings.nowMs = { moment * 1_000 }
      settings.runsTimers = false
    }
    let center = try DeviceRuntime.NotificationCenter(settings)
    switch words.first {
    case "on": try await switchOn(center, at: words.count > 1 ? words[1] : "20:00")
    case "off":
      try await center.removePending([id])
      print("off")
    case "status": try await status(center)
    case "deny": print(try await center.requestAuthorization([.alert, .sound]) ? "allowed before" : "denied")
    case "settings":
      var allowed = await center.settings
      allowed.authorizationStatus = .authorized
      (allowed.alert, allowed.sound, allowed.notificationCenter) = (.enabled, .enabled, .enabled)
      try await center.changeSettings(allowed)
      print("notifications are allowed")
    case "run":
      await center.start()
      if moment == nil { while true { try await Task.sleep(for: .seconds(3_600)) } }
      await center.stop()
    default:
      print("usage: reminder on [HOUR:MINUTE] | off | status | run [--until SECONDS] | deny | settings")
      exit(2)
    }
  }

  static let id = "commit-today"

  static func switchOn(_ center: DeviceRuntime.NotificationCenter, at clock: String) async throws {
    let parts = clock.split(separator: ":").compactMap { Int($0) }
    guard try await center.requestAuthorization([.alert, .sound]) else {
      print("You refused notifications. Allow them first: reminder settings")
      exit(1)
    }
    guard parts.count == 2 else {
      print("not a time of day: \(clock)")
      exit(2)
    }
    var content = NotificationContent(title: "Commit today?", body: "A small one counts.")
    content.sound = .standard
    let trigger = NotificationTrigger.calendar(
      CalendarFields(hour: parts[0], minute: parts[1]), repeats: true)
    try await center.add(NotificationRequest(id: id, content: content, trigger: trigger))
    try await status(center)
  }

  static func status(_ center: DeviceRuntime.NotificationCenter) async throws {
    guard let request = await center.pendingRequests.first(where: { $0.id == id }),
      let next = await center.nextTriggerDateMs(of: request)
    else { return print("off") }
    print("on, next at \(next / 1_000)")
  }

  static func presenter() -> any NotificationPresenter {
    if let desktop = try? DesktopPresenter(.init(appName: "Reminder", desktopEntry: "org.example.reminder")) {
      return desktop
    }
    return TerminalPresenter { print($0) }
  }
}
