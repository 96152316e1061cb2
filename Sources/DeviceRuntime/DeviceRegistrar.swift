import Bytes
import Connections
import EventLoops
import HTTPCore
import JSONCore
import TLSCore
import XMPPCore

/// Registers apps on devices with a server, over HTTPS.
public final class DeviceRegistrar: Sendable {
  /// What kind of app instance is registered.
  public enum Platform: String, Sendable, Hashable, CaseIterable {
    /// A program on Linux.
    case linux
    /// An app on Android.
    case android
    /// An app on iOS.
    case ios
    /// A web page.
    case web
  }

  /// Why a registration failed.
  public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The HTTP status; nil when there was no answer.
    public var status: Int?
    /// For people: the server's words or the reason there are none.
    public var detail: String

    /// Makes a failure; test doubles do.
    public init(status: Int?, detail: String) {
      self.status = status
      self.detail = detail
    }

    /// One line for logs.
    public var description: String { status.map { "\($0): \(detail)" } ?? detail }
  }

  private let host: String
  private let port: UInt16
  private let serverName: String?
  private let project: String
  private let apiKey: String
  private let timeout: Duration
  private let context: TLSContext
  private let loop: EventLoop

  /// - Parameters:
  ///   - host: The server's name or address.
  ///   - port: The server's HTTPS port.
  ///   - project: The project's id.
  ///   - apiKey: The project's key for registrations. Never logged.
  ///   - trust: Which certificates are believed.
  ///   - serverName: The name the certificate must be for; nil for `host`.
  ///   - timeout: Of one request, connecting included.
  /// - Throws: ``Failure`` when the certificates cannot be read or no thread can be had.
  public init(
    host: String = "localhost", port: Int = 8443, project: String, apiKey: String,
    trust: Device.Trust = .system, serverName: String? = nil, timeout: Duration = .seconds(15)
  ) throws(Failure) {
    guard let port = UInt16(exactly: port), port > 0 else {
      throw Failure(status: nil, detail: "not a port: \(port)")
    }
    self.host = host
    self.port = port
    self.serverName = serverName
    self.project = project
    self.apiKey = apiKey
    self.timeout = timeout
    do throws(Device.ConnectError) {
      context = try trust.makeContext(protocols: ["http/1.1"])
    } catch {
      throw Failure(status: nil, detail: error.detail)
    }
    loop = EventLoop(name: "registrar")
    do throws(NetworkFault) {
      try loop.start()
    } catch {
      throw Failure(status: nil, detail: error.description)
    }
  }

  // On the loop's own thread, which only asks: the last reference may go away on any thread, also that one.
  deinit {
    let loop = loop
    loop.submit { loop.stop() }
  }

  /// Registers an app.
  ///
  /// - Parameters:
  ///   - app: Package name or bundle id.
  ///   - platform: What kind of device it is.
  ///   - user: Whose device it is, for messages to users.
  ///   - previousToken: A token that the new one replaces: messages to it reach the new one from now on.
  ///   - device: A device that is registered already and gets another app; nil makes a new device.
  public func register(
    app: String, platform: Platform = .linux, user: String? = nil, previousToken: String? = nil,
    device: Device.Credentials? = nil
  ) async throws(Failure) -> Device.Credentials {
    var members: [JSONValue.Member] = [
      .init("app", .string(app)), .init("platform", .string(platform.rawValue)),
    ]
    if let user { members.append(.init("user", .string(user))) }
    if let previousToken { members.append(.init("previous_token", .string(previousToken))) }
    if let device {
      members.append(.init("device_id", .string(device.deviceID)))
      members.append(.init("device_secret", .string(device.deviceSecret)))
    }
    let answer = try await send(
      HTTPRequest(
        method: "POST", target: "/v1/projects/\(escaped(project))/registrations",
        fields: ["content-type": "application/json", "x-goog-api-key": apiKey],
        body: JSONValue.object(members).bytes))
    guard let token = answer["token"]?.string, let id = answer["device_id"]?.string,
      let secret = answer["device_secret"]?.string
    else { throw Failure(status: 200, detail: "the answer holds no credentials") }
    return Device.Credentials(token: token, deviceID: id, deviceSecret: secret)
  }

  /// Ends a registration: messages to its token are refused from now on.
  public func unregister(_ credentials: Device.Credentials) async throws(Failure) {
    _ = try await send(
      HTTPRequest(
        method: "DELETE",
        target: "/v1/projects/\(escaped(project))/registrations/\(escaped(credentials.token))",
        fields: ["authorization": login(credentials)]))
  }

  /// Messages to a topic reach the registration from now on.
  ///
  /// - Parameters:
  ///   - credentials: Of the registration.
  ///   - topic: Its name, with or without `/topics/`.
  public func subscribe(_ credentials: Device.Credentials, to topic: String) async throws(Failure) {
    _ = try await send(
      HTTPRequest(
        method: "POST",
        target: subscriptions(credentials) + "?topic_name=" + escaped(topic),
        fields: ["authorization": login(credentials)]))
  }

  /// Messages to a topic no longer reach the registration; harmless when they did not.
  public func unsubscribe(_ credentials: Device.Credentials, from topic: String) async throws(Failure) {
    let name = topic.hasPrefix("/topics/") ? String(topic.dropFirst(8)) : topic
    _ = try await send(
      HTTPRequest(
        method: "DELETE",
        target: subscriptions(credentials) + "/" + escaped(name) + "?allow_missing=true",
        fields: ["authorization": login(credentials)]))
  }

  private func subscriptions(_ credentials: Device.Credentials) -> String {
    "/v1/projects/\(escaped(project))/registrations/\(escaped(credentials.token))/topicSubscriptions"
  }

  private func login(_ credentials: Device.Credentials) -> String {
    "Basic " + Base64.encode(Array("\(credentials.deviceID):\(credentials.deviceSecret)".utf8))
  }

  private func send(_ request: HTTPRequest) async throws(Failure) -> JSONValue {
    let result = await withCheckedContinuation { continuation in
      let isComing = loop.submit { [self] in
        HTTPExchange.send(
          request, host: host, port: port, name: serverName, context: context, timeout: timeout, on: loop
        ) { continuation.resume(returning: $0) }
      }
      if !isComing { continuation.resume(returning: .failure(.channel(.loopStopped))) }
    }
    let response: HTTPResponse
    do throws(HTTPExchangeFault) {
      response = try result.get()
    } catch {
      throw Failure(status: nil, detail: error.description)
    }
    let answer = try? JSONValue(parsing: response.body)
    guard response.status == 200 else {
      let words =
        answer?["error"]?["message"]?.string ?? answer?["error"]?.string
        ?? "the server refused the request"
      throw Failure(status: response.status, detail: words)
    }
    return answer ?? .object([])
  }

  /// One part of a path: all but unreserved characters as `%XX` (RFC 3986 §2.3), and `:` as it is.
  private func escaped(_ part: String) -> String {
    var text = ""
    for byte in part.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E, 0x3A:
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        text += digits.count == 1 ? "%0" + digits : "%" + digits
      }
    }
    return text
  }
}
