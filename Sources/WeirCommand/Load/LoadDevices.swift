import Connections
import DeviceRuntime
import EventLoops
import Foundation
import HTTPCore
import JSONCore
import LoadGenerator
import TLSCore

/// The devices of a load test: registered before it, subscribed to its topics, unregistered after it.
struct LoadDevices {
  static let app = "org.example.load"
  /// Requests at a time.
  private static let atOnce = 16

  let endpoint: Endpoint
  let project: String
  let apiKey: String
  let caFile: String

  private func registrar() throws -> DeviceRegistrar {
    try DeviceRegistrar(
      host: endpoint.host, port: Int(endpoint.port), project: project, apiKey: apiKey, trust: .file(caFile),
      timeout: .seconds(60))
  }

  /// Registers so many devices.
  func register(_ count: Int, _ console: Console) async throws -> [LoadIdentity] {
    do {
      let registrar = try registrar()
      return try await Self.each(count) { _ in
        let made = try await registrar.register(app: Self.app)
        return LoadIdentity(token: made.token, id: made.deviceID, secret: made.deviceSecret)
      } progress: {
        console.progress("registering: \($0) of \(count) devices")
      }
    } catch let failure as DeviceRegistrar.Failure {
      throw CommandFault(
        .cannotConnect,
        "Devices cannot be registered at \(endpoint): \(failure). Name the HTTPS port with --https.")
    }
  }

  func unregister(_ devices: [LoadIdentity], _ console: Console) async {
    guard let registrar = try? registrar() else { return }
    _ = try? await Self.each(devices.count) { index in
      let device = devices[index]
      try? await registrar.unregister(
        Device.Credentials(token: device.token, deviceID: device.id, deviceSecret: device.secret))
    } progress: {
      console.progress("unregistering: \($0) of \(devices.count) devices")
    }
  }

  /// Subscribes devices to topics.
  ///
  /// - Parameter pairs: Token and topic.
  func subscribe(_ pairs: [(token: String, topic: String)], _ console: Console) async throws {
    guard !pairs.isEmpty else { return }
    let loop = EventLoop(name: "weir-load-topics")
    try loop.start()
    defer { loop.stop() }
    var options = TLSClientOptions(trust: .files([caFile]))
    options.protocols = ["http/1.1"]
    let context = try TLSContext(client: options)
    let (endpoint, project, apiKey) = (endpoint, project, apiKey)
    _ = try await Self.each(pairs.count) { index in
      let pair = pairs[index]
      let path =
        "/v1/projects/\(project.pathEncoded)/registrations/\(pair.token.pathEncoded)"
        + "/topicSubscriptions?topic_name=\(pair.topic)"
      let request = HTTPRequest(
        method: "POST", target: path, fields: ["x-goog-api-key": apiKey], body: [])
      let result = await withCheckedContinuation { continuation in
        let isComing = loop.submit {
          HTTPExchange.send(
            request, host: endpoint.host, port: endpoint.port, context: context, timeout: .seconds(60),
            on: loop
          ) { continuation.resume(returning: $0) }
        }
        if !isComing { continuation.resume(returning: .failure(.channel(.loopStopped))) }
      }
      switch result {
      case .success(let response) where response.status == 200: break
      case .success(let response):
        throw CommandFault(
          .cannotConnect,
          "Devices cannot subscribe to topics at \(endpoint): status \(response.status)")
      case .failure(let fault):
        throw CommandFault(.cannotConnect, "Devices cannot subscribe to topics at \(endpoint): \(fault)")
      }
    } progress: {
      console.progress("subscribing: \($0) of \(pairs.count)")
    }
  }

  /// Does `work` for every number below `count`, some at a time; the values come in order.
  private static func each<Value: Sendable>(
    _ count: Int, _ work: @escaping @Sendable (Int) async throws -> Value,
    progress: (Int) -> Void
  ) async throws -> [Value] {
    var values: [Value?] = Array(repeating: nil, count: count)
    try await withThrowingTaskGroup(of: (Int, Value).self) { group in
      var next = 0
      var done = 0
      while next < min(atOnce, count) {
        let number = next
        group.addTask { (number, try await work(number)) }
        next += 1
      }
      while let (number, value) = try await group.next() {
        values[number] = value
        done += 1
        if done.isMultiple(of: 50) { progress(done) }
        if next < count {
          let number = next
          group.addTask { (number, try await work(number)) }
          next += 1
        }
      }
    }
    return values.compactMap { $0 }
  }

  // MARK: Files

  /// Devices as `weir register` prints them.
  static func read(_ path: String) throws(CommandFault) -> [LoadIdentity] {
    let text = try text(of: path)
    var devices: [LoadIdentity] = []
    for (index, line) in text.split(separator: "\n").enumerated() where !line.allSatisfy(\.isWhitespace) {
      guard let value = try? JSONValue(parsing: String(line)), let token = value["token"]?.string,
        let id = value["device_id"]?.string, let secret = value["device_secret"]?.string
      else {
        throw CommandFault(
          .wrongUsage, "\(path), line \(index + 1): no device as weir register prints it.")
      }
      devices.append(LoadIdentity(token: token, id: id, secret: secret))
    }
    return devices
  }

  /// Tokens, one a line, as text or as `{"token": …}`.
  static func tokens(_ path: String) throws(CommandFault) -> [String] {
    let lines = try text(of: path).split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    let tokens = lines.filter { !$0.isEmpty }.map { line in
      (try? JSONValue(parsing: line))?["token"]?.string ?? line
    }
    guard !tokens.isEmpty else { throw CommandFault(.wrongUsage, "\(path) holds no tokens.") }
    return tokens
  }

  static func write(_ devices: [LoadIdentity], to path: String) throws(CommandFault) {
    let lines = devices.map { device -> String in
      let value: JSONValue = [
        "token": .string(device.token), "device_id": .string(device.id),
        "device_secret": .string(device.secret),
      ]
      return value.text + "\n"
    }
    do {
      try lines.joined().write(toFile: path, atomically: true, encoding: .utf8)
    } catch {
      throw CommandFault(.someFailed, "\(path) cannot be written: \(error.localizedDescription)")
    }
  }

  private static func text(of path: String) throws(CommandFault) -> String {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw CommandFault(.wrongUsage, "\(path) cannot be read.")
    }
    return String(decoding: data, as: UTF8.self)
  }
}
