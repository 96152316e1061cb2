import Connections
import DeliveryCore
import DeviceRuntime
import EventLoops
import Foundation
import JSONCore
import PushModel

/// The command `weir device`.
struct DeviceCommand: Subcommand {
  static let name = "device"
  static let summary = "Connects devices and prints what they receive."
  static let flags = [
    CommonFlags.server, CommonFlags.credentials,
    Flag("from", "FILE", "devices as weir register prints them (default: registers new ones)"),
    Flag("https", "HOST:PORT", "the HTTPS port, for registering (default localhost:8443)"),
    Flag("count", "N", "how many devices (default 1, or all of --from)"),
    Flag("ack", "auto|none|slow:MS", "when to ack (default auto)"),
    Flag("upstream", "RATE", "upstream messages a second, over all devices (default 0)"),
    Flag("messages", "N", "ends after so many messages (default: never)"),
    Flag("quiet", nil, "counts instead of printing each message"),
    Flag("desktop", nil, "one device that keeps its data and shows notifications on the desktop"),
    Flag("app-data", "DIR", "with --desktop: the app's data folder (default ./weir-device-data)"),
    Flag("user", "ID", "with --desktop: whose device it is"),
  ]
  static let examples = [
    "weir device", "weir register --count 100 > devices.ndjson && weir device --from devices.ndjson",
    "weir device --count 10 --upstream 5 --json", "weir device --desktop --user ann",
  ]

  private let endpoint: Endpoint
  private let https: Endpoint
  private let credentials: CredentialFolder
  private let file: String?
  private let count: Int?
  private let acks: DeviceAckRule
  private let upstreamRate: Int
  private let messagesMax: Int
  private let isQuiet: Bool
  private let desktop: DesktopDevice?

  init(_ arguments: Arguments) throws(UsageFault) {
    endpoint = try Endpoint(
      arguments.text("server", default: "localhost:5235"), defaultPort: 5235, flag: "server")
    https = try Endpoint(arguments.text("https", default: "localhost:8443"), defaultPort: 8443, flag: "https")
    credentials = CredentialFolder(arguments)
    file = arguments.text("from")
    count = arguments.text("count") == nil ? nil : try arguments.number("count", default: 1, in: 1...100_000)
    upstreamRate = try arguments.number("upstream", default: 0, in: 0...100_000)
    messagesMax = try arguments.number("messages", default: Int.max, in: 1...Int.max)
    isQuiet = arguments.has("quiet")
    if arguments.has("desktop") {
      desktop = DesktopDevice(
        endpoint: endpoint, https: https, credentials: credentials,
        folder: arguments.text("app-data", default: "./weir-device-data"), user: arguments.text("user"),
        messagesMax: messagesMax)
    } else {
      desktop = nil
    }
    switch arguments.text("ack", default: "auto") {
    case "auto": acks = .whenHandled
    case "none": acks = .never
    case let text where text.hasPrefix("slow:"):
      guard let pause = Int(text.dropFirst(5)), (1...3_600_000).contains(pause) else {
        throw UsageFault(message: "--ack slow:MS takes 1 to 3600000 milliseconds.")
      }
      acks = .delayed(.milliseconds(pause))
    default: throw UsageFault(message: "--ack must be auto, none or slow:MS.")
    }
  }

  func run(_ console: Console) async throws -> ExitCode {
    if let desktop { return try await desktop.run(console) }
    let devices = try await devices(console)
    let fleet = try Fleet(
      Fleet.Settings(endpoint: endpoint, caFile: credentials.caFile, acks: acks),
      show: { [isQuiet] index, message in
        if !isQuiet { Self.show(message, of: devices[index], console) }
      },
      showOutcome: { index, message in Self.show(message, of: devices[index], console) })
    let stopping = Stopping()
    let signals = Signals([SIGINT, SIGTERM]) { _ in stopping.stop() }
    try await fleet.connect(devices)
    let patience = ContinuousClock.now + .seconds(30)
    while fleet.connectedCount < devices.count {
      if let failure = fleet.failureText { throw CommandFault(.cannotConnect, "\(endpoint): \(failure)") }
      guard ContinuousClock.now < patience, !stopping.isStopped else {
        throw CommandFault(
          .cannotConnect, "\(endpoint): \(fleet.connectedCount) of \(devices.count) devices are connected.")
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    console.say("\(devices.count) devices are connected. Ctrl-C ends.")
    var sent: UInt64 = 0
    let sender = try? credentials.senderID()
    while !stopping.isStopped, fleet.deliveredCount < messagesMax {
      try await Task.sleep(for: .milliseconds(100))
      if upstreamRate > 0, let sender {
        sent = try await sendUpstream(fleet, devices, to: sender, from: sent)
      }
      if isQuiet { console.progress("\(fleet.deliveredCount) messages, \(fleet.connectedCount) connected") }
      if let failure = fleet.failureText { throw CommandFault(.cannotConnect, "\(endpoint): \(failure)") }
    }
    signals.stop()
    await fleet.stop()
    console.progress("")
    console.say("\(fleet.deliveredCount) messages were received.")
    return .done
  }

  private func sendUpstream(
    _ fleet: Fleet, _ devices: [Device.Credentials], to sender: String, from first: UInt64
  ) async throws -> UInt64 {
    let count = UInt64(max(1, upstreamRate / 10))
    let messages = try (first..<(first + count)).map { number in
      (
        Int(number) % devices.count,
        try UpstreamEncoder.encode(
          ["number": String(number)], to: sender, id: "u-\(getpid())-\(number)", timeToLive: nil,
          token: devices[Int(number) % devices.count].token), number
      )
    }
    try await fleet.loop.perform {
      for (index, message, number) in messages { _ = fleet.sendUpstream(index, message, tag: number) }
    }
    return first + count
  }

  private func devices(_ console: Console) async throws -> [Device.Credentials] {
    if let file {
      guard let data = FileManager.default.contents(atPath: file) else {
        throw CommandFault(.wrongUsage, "\(file) cannot be read.")
      }
      let lines = String(decoding: data, as: UTF8.self).split(separator: "\n")
      let all = try lines.enumerated().map { number, line in
        guard let value = try? JSONValue(parsing: String(line)), let token = value["token"]?.string,
          let id = value["device_id"]?.string, let secret = value["device_secret"]?.string
        else { throw CommandFault(.wrongUsage, "\(file) line \(number + 1) is no device of weir register.") }
        return Device.Credentials(token: token, deviceID: id, deviceSecret: secret)
      }
      guard !all.isEmpty else { throw CommandFault(.wrongUsage, "\(file) holds no device.") }
      return Array(all.prefix(count ?? all.count))
    }
    do {
      let registrar = try DeviceRegistrar(
        host: https.host, port: Int(https.port), project: try credentials.projectID(),
        apiKey: try credentials.key("api-key"), trust: .file(credentials.caFile))
      var made: [Device.Credentials] = []
      for _ in 0..<(count ?? 1) { made.append(try await registrar.register(app: "org.example.app")) }
      for device in made { console.say("token \(device.token)") }
      return made
    } catch let failure as DeviceRegistrar.Failure {
      throw CommandFault(.cannotConnect, "\(https): \(failure)")
    }
  }

  private static func show(
    _ message: DeviceDelivery.Message, of device: Device.Credentials, _ console: Console
  ) {
    if console.isJSON {
      console.result([
        "kind": "message", "token": .string(device.token), "message_id": .string(message.messageID),
        "from": .string(message.from),
        "data": .object(message.data.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) }),
        "notification": message.notification ?? .null,
      ])
    } else {
      let data = message.data.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(
        separator: " ")
      let notification = message.notification.map { " \($0.text)" } ?? ""
      console.result("\(device.token.prefix(8))… from \(message.from) \(data)\(notification)")
    }
  }

  private static func show(_ message: FinishedMessage, of device: Device.Credentials, _ console: Console) {
    if console.isJSON {
      console.result([
        "kind": "upstream_outcome", "token": .string(device.token), "message_id": .string(message.id),
        "outcome": .string("\(message.outcome)"),
      ])
    } else {
      console.say("upstream \(message.id): \(message.outcome)")
    }
  }
}
