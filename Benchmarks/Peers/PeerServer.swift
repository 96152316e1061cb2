import DeviceRuntime
import EventLoops
import Foundation
import LoadGenerator
import TLSCore
import TestKit

/// The servers that are compared, each with the settings that serve it best at this task, and for scale a program that does
/// nothing but the task.
enum PeerKind: String, CaseIterable {
  case weir, prosody, ejabberd, ejabberdMQTT = "ejabberd-mqtt", mosquitto
  case reference = "switch", referenceWithLog = "switch-log"

  var title: String {
    switch self {
    case .weir: "Weir"
    case .prosody: "Prosody"
    case .ejabberd: "ejabberd, XMPP"
    case .ejabberdMQTT: "ejabberd, MQTT"
    case .mosquitto: "Mosquitto"
    case .reference: "a switch in C"
    case .referenceWithLog: "the switch, with a log"
    }
  }

  /// Whether it keeps messages for devices that are away.
  var stores: Bool { self != .reference && self != .referenceWithLog }
}

/// One of them, running.
final class PeerServer {
  let kind: PeerKind
  let process: PeerProcess
  let make: PeerLoad.Make
  private let port: UInt16
  private let caFile: String
  private let deviceCount: Int
  private var weir = PeerAddress?.none

  /// Writes its settings and accounts, and starts it.
  ///
  /// - Parameter certificates: A folder of `weir certs`.
  init(_ kind: PeerKind, devices: Int, weir: String, certificates: String, in directory: String) async throws
  {
    self.kind = kind
    deviceCount = devices
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    port = PeerProcess.freePort()
    let files = PeerFiles(
      directory: directory, port: port, certificate: certificates + "/server.pem",
      key: certificates + "/server.key", devices: devices)
    switch kind {
    case .weir:
      caFile = directory + "/data/credentials/ca.pem"
      process = PeerProcess(
        weir,
        [
          "serve", "--data", directory + "/data", "--xmpp-port", "\(port)", "--https-port", "0",
          "--admin-port", "0", "--loops", "1", "--log-level", "error", "--limit", "stored-per-device=1000000",
        ], in: directory)
      make = { WeirWire($0, $1, scratch: $2, on: $3) }
    case .prosody:
      caFile = certificates + "/ca.pem"
      try files.writeProsody()
      process = PeerProcess(
        "/usr/bin/prosody", ["--config", directory + "/prosody.cfg.lua", "-F"], in: directory)
      make = { XMPPWire($0, $1, on: $3) }
    case .ejabberd, .ejabberdMQTT:
      caFile = certificates + "/ca.pem"
      try files.writeEjabberd(isMQTT: kind == .ejabberdMQTT)
      process = PeerProcess(
        "/usr/bin/erl", files.ejabberdArguments,
        environment: [
          "EJABBERD_CONFIG_PATH": directory + "/ejabberd.yml", "EJABBERD_LOG_PATH": directory + "/log",
          "HOME": directory, "ERL_MAX_PORTS": "65536", "ERL_CRASH_DUMP": directory + "/crash",
        ], in: directory)
      if kind == .ejabberd {
        make = { XMPPWire($0, $1, on: $3) }
      } else {
        make = { role, address, _, loop in
          let wire = MQTTWire(role, address, on: loop)
          wire.logsIn = true
          return wire
        }
      }
    case .mosquitto:
      caFile = certificates + "/ca.pem"
      try files.writeMosquitto()
      process = PeerProcess("/usr/sbin/mosquitto", ["-c", directory + "/mosquitto.conf"], in: directory)
      make = { MQTTWire($0, $1, on: $3) }
    case .reference, .referenceWithLog:
      caFile = certificates + "/ca.pem"
      let log = kind == .referenceWithLog ? [directory + "/log"] : []
      process = PeerProcess(
        weir.replacingOccurrences(of: "/weir", with: "/reference-switch"),
        ["\(port)", files.certificate, files.key] + log, in: directory)
      make = { SwitchWire($0, $1, on: $3) }
    }
    try await start()
    if kind == .weir { try await register() }
  }

  private var isPrepared: String { process.directory + "/prepared" }

  func start() async throws {
    let child = try process.start()
    if kind == .weir {
      let address = try await child.readyServer(within: .seconds(120))
      (https, senderID) = (address.https, address.senderID)
    } else {
      try process.wait(forPort: port)
      guard kind == .ejabberd || kind == .ejabberdMQTT else { return }
      let deadline = ContinuousClock.now + .seconds(120)
      while !FileManager.default.fileExists(atPath: isPrepared) {
        guard process.isRunning, ContinuousClock.now < deadline else {
          throw PeerFault("ejabberd does not make its accounts")
        }
        usleep(50_000)
      }
    }
  }

  func stop() { process.stop() }

  func address() throws -> PeerAddress {
    if let weir { return weir }
    return PeerAddress(port: port, context: try TLSContext(client: TLSClientOptions(trust: .files([caFile]))))
  }

  // MARK: Weir

  private var https = 0
  private var senderID = ""

  private func key(_ name: String) throws -> String {
    try String(contentsOfFile: process.directory + "/data/credentials/" + name, encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }

  private func register() async throws {
    var address = PeerAddress(
      port: port, context: try TLSContext(client: TLSClientOptions(trust: .files([caFile]))))
    address.senderID = senderID
    address.serverKey = try key("server-key")
    let registrar = try DeviceRegistrar(
      port: https, project: "demo", apiKey: try key("api-key"), trust: .file(caFile), timeout: .seconds(60))
    let count = deviceCount
    address.devices = try await withThrowingTaskGroup(of: [(String, String, String)].self) { group in
      for part in 0..<8 {
        group.addTask {
          var made: [(String, String, String)] = []
          for _ in stride(from: part, to: count, by: 8) {
            let device = try await registrar.register(app: "org.example.app")
            made.append((device.deviceID, device.deviceSecret, device.token))
          }
          return made
        }
      }
      return try await group.reduce(into: []) { $0 += $1.map { (id: $0.0, secret: $0.1, token: $0.2) } }
    }
    weir = address
  }
}
