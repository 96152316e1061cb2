import Foundation
import HTTPCore
import JSONCore

/// A running server as tests use it: its ports, its first project and the folder with its keys.
public struct ServerAddress: Sendable, CustomStringConvertible {
  /// XMPP over TLS.
  public var xmpp: Int
  /// HTTPS.
  public var https: Int
  /// Administration, plain HTTP.
  public var admin: Int
  /// Id of the project that devices register with.
  public var projectID: String
  /// Its sender id.
  public var senderID: String
  /// Folder with the keys and certificates.
  public var credentials: String

  /// The JSON of the line that `weir serve` prints when it is ready.
  public var json: String {
    let value: JSONValue = [
      "xmpp": .number(xmpp), "https": .number(https), "admin": .number(admin),
      "project_id": .string(projectID), "sender_id": .string(senderID), "credentials": .string(credentials),
    ]
    return value.text
  }

  /// The same JSON.
  public var description: String { json }

  init(
    xmpp: Int, https: Int, admin: Int, projectID: String, senderID: String, credentials: String
  ) {
    self.xmpp = xmpp
    self.https = https
    self.admin = admin
    self.projectID = projectID
    self.senderID = senderID
    self.credentials = credentials
  }

  /// Reads the line `weir ready {…}`; nil for another line.
  public init?(readyLine line: String) {
    let mark = "weir ready "
    guard line.hasPrefix(mark), let value = try? JSONValue(parsing: String(line.dropFirst(mark.count))),
      let xmpp = value["xmpp"]?.int, let https = value["https"]?.int, let admin = value["admin"]?.int,
      let project = value["project_id"]?.string, let sender = value["sender_id"]?.string,
      let credentials = value["credentials"]?.string
    else { return nil }
    self.init(
      xmpp: Int(xmpp), https: Int(https), admin: Int(admin), projectID: project, senderID: sender,
      credentials: credentials)
  }

  /// The certificate authority that signed the server's certificate, PEM.
  public var certificateAuthority: String { credentials + "/ca.pem" }

  /// The text of a file in the credentials folder: `server-key`, `api-key`, `admin-key`.
  public func secret(_ name: String) throws -> String {
    try String(contentsOfFile: credentials + "/" + name, encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }

  // MARK: Devices

  /// Registers a device, or another app on a known one.
  ///
  /// - Throws: ``TestHTTPFailure`` with the server's words when it refuses.
  public func registerDevice(
    app: String = "org.example.app", platform: String = "linux", user: String? = nil,
    on device: TestDevice? = nil, replacing previousToken: String? = nil
  ) async throws -> TestDevice {
    var fields: [JSONValue.Member] = [.init("app", .string(app)), .init("platform", .string(platform))]
    if let user { fields.append(.init("user", .string(user))) }
    if let previousToken { fields.append(.init("previous_token", .string(previousToken))) }
    if let device {
      fields.append(.init("device_id", .string(device.id)))
      fields.append(.init("device_secret", .string(device.secret)))
    }
    let answer = try await request(
      "POST", "/v1/projects/\(projectID)/registrations",
      headers: ["x-goog-api-key": try secret("api-key"), "content-type": "application/json"],
      body: JSONValue.object(fields).text)
    guard answer.status == 200, let value = try? JSONValue(parsing: answer.body),
      let token = value["token"]?.string, let id = value["device_id"]?.string,
      let secret = value["device_secret"]?.string
    else { throw TestHTTPFailure(answer) }
    return TestDevice(token: token, id: id, secret: secret)
  }

  /// Unregisters a token in the name of its device.
  public func unregister(_ device: TestDevice) async throws {
    let login = Data("\(device.id):\(device.secret)".utf8).base64EncodedString()
    let answer = try await request(
      "DELETE", "/v1/projects/\(projectID)/registrations/\(device.token)",
      headers: ["authorization": "Basic " + login])
    guard answer.status == 200 else { throw TestHTTPFailure(answer) }
  }

  // MARK: HTTP

  /// One request to the HTTPS listener.
  public func request(
    _ method: String, _ target: String, headers: [String: String] = [:], body: String = "",
    within time: Duration = .seconds(15)
  ) async throws -> TestHTTPAnswer {
    try await TestHTTP.request(
      port: https, authority: certificateAuthority, method, target, headers: headers, body: body, within: time
    )
  }

  /// One request to the admin listener, with the admin key.
  public func administer(
    _ method: String, _ target: String, body: String = "", within time: Duration = .seconds(15)
  ) async throws -> TestHTTPAnswer {
    try await TestHTTP.request(
      port: admin, authority: nil, method, target,
      headers: ["authorization": "Bearer " + (try secret("admin-key")), "content-type": "application/json"],
      body: body, within: time)
  }

  // MARK: Streams

  /// Connects to the XMPP listener; nothing is sent yet.
  public func connect(within time: Duration = .seconds(15)) async throws -> TestStream {
    try await TestStream.connect(port: xmpp, authority: certificateAuthority, within: time)
  }

  /// A bound stream of the project's app server.
  public func connectAppServer() async throws -> TestStream {
    let stream = try await connect()
    _ = try await stream.logIn(user: senderID + "@gcm.googleapis.com", password: try secret("server-key"))
    return stream
  }

  /// A bound stream of a device.
  public func connect(_ device: TestDevice) async throws -> TestStream {
    let stream = try await connect()
    _ = try await stream.logIn(user: device.id, password: device.secret)
    return stream
  }
}

/// A registered device with one of its tokens.
public struct TestDevice: Sendable, Hashable {
  /// What senders send to.
  public var token: String
  /// What the device logs in as.
  public var id: String
  /// What it logs in with.
  public var secret: String
}
