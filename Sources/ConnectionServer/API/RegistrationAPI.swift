import Foundation
import JSONCore
import PushModel
import Seams
import Stores
import TLSCore
import Telemetry

/// `POST /v1/projects/{project}/registrations` and `DELETE …/registrations/{token}`.
struct RegistrationAPI: Sendable {
  let context: ServerContext

  func register(project id: String, _ request: APIRequest) async -> APIResponse {
    guard let project = context.accounts.project(id) else {
      return .notFound("There is no project \"\(id.prefix(64))\".")
    }
    guard let key = request.headers["x-goog-api-key"], let account = context.accounts.key(key, .api),
      account.sender == project.sender
    else {
      return .fault(
        401, "UNAUTHENTICATED",
        "The header x-goog-api-key must hold the project's API key: see credentials/api-key.")
    }
    let body: JSONValue
    do { body = try JSONValue(parsing: request.body) } catch {
      return .invalid("The body is not a JSON object: \(error)")
    }
    let fields: RegistrationFields
    do { fields = try RegistrationFields(body) } catch { return .invalid(error.message) }
    do {
      return try await register(fields, project)
    } catch let fault as StoreFault {
      return Self.answer(fault)
    } catch {
      context.log.error("A registration failed", ["error": .init("\(error)")])
      return .fault(500, "INTERNAL", "Internal error encountered.")
    }
  }

  /// Registers for a caller who is known to be allowed to.
  func register(_ fields: RegistrationFields, _ project: Project) async throws -> APIResponse {
    let deviceID: String
    let secret: String
    if let known = fields.device {
      guard let found = try await context.store.credentials(of: known.id),
        Secrets.areEqual(found.secretHash, try Secrets.sha256(Array(known.secret.utf8)))
      else { return .fault(401, "UNAUTHENTICATED", "device_id and device_secret do not belong together.") }
      (deviceID, secret) = (known.id, known.secret)
    } else {
      (deviceID, secret) = (try Secrets.randomText(bytes: 16), try Secrets.randomText(bytes: 32))
    }
    let token = RegistrationToken(random: try Secrets.random(RegistrationToken.randomByteCount))
    let registration = try await context.store.register(
      RegistrationRequest(
        token: token.text, deviceID: deviceID, secretHash: try Secrets.sha256(Array(secret.utf8)),
        sender: project.sender, app: fields.app, platform: fields.platform, user: fields.user,
        previousToken: fields.previousToken),
      now: context.time.wall)
    if let previous = fields.previousToken { context.forget(token: previous) }
    if fields.device != nil { try await context.refreshRegistrations(of: deviceID) }
    context.log.debug("Registered", ["device": .init(registration.device.value), "app": .init(fields.app)])
    return .json([
      "token": .string(token.text), "device_id": .string(deviceID), "device_secret": .string(secret),
    ])
  }

  func unregister(project id: String, token: String, _ request: APIRequest) async -> APIResponse {
    guard let project = context.accounts.project(id) else {
      return .notFound("There is no project \"\(id.prefix(64))\".")
    }
    guard let device = Self.basic(request.headers["authorization"]) else {
      return .fault(
        401, "UNAUTHENTICATED", "Use HTTP Basic with device_id as the user and device_secret as the password."
      )
    }
    do {
      guard let found = try await context.store.credentials(of: device.user),
        Secrets.areEqual(found.secretHash, try Secrets.sha256(Array(device.password.utf8)))
      else { return .fault(401, "UNAUTHENTICATED", "The device id or its secret is wrong.") }
      guard found.registrations.contains(where: { $0.token == token && $0.sender == project.sender }) else {
        return .notFound("The device has no such registration.")
      }
      _ = try await context.unregister(token)
      return .json([:])
    } catch let fault as StoreFault {
      return Self.answer(fault)
    } catch {
      return .fault(500, "INTERNAL", "Internal error encountered.")
    }
  }

  static func answer(_ fault: StoreFault) -> APIResponse {
    switch fault {
    case .refused(let detail): .fault(409, "ALREADY_EXISTS", detail)
    case .unavailable: .unavailable("The store cannot be reached; retry after a second.")
    case .corrupt, .schemaTooNew, .locked: .fault(500, "INTERNAL", "Internal error encountered.")
    }
  }

  /// Reads `Basic base64(user:password)`.
  static func basic(_ header: String?) -> (user: String, password: String)? {
    guard let header, header.lowercased().hasPrefix("basic "),
      let data = Data(base64Encoded: String(header.dropFirst(6)).trimmed)
    else { return nil }
    let parts = String(decoding: data, as: UTF8.self).split(
      separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    return (String(parts[0]), String(parts[1]))
  }
}

/// The body of a registration, checked.
struct RegistrationFields: Sendable {
  struct Fault: Error { var message: String }

  var app: String
  var platform: Platform
  var user: String?
  var previousToken: String?
  var device: (id: String, secret: String)?

  init(_ body: JSONValue) throws(Fault) {
    guard body.members != nil else { throw Fault(message: "The body must be a JSON object.") }
    guard let app = try Self.text(body, "app", max: 255), !app.isEmpty else {
      throw Fault(message: "\"app\" is missing: the package name or bundle id.")
    }
    guard app.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "\"") }) else {
      throw Fault(message: "\"app\" may hold visible ASCII characters only.")
    }
    self.app = app
    let platformText = try Self.text(body, "platform", max: 16) ?? Platform.linux.rawValue
    guard let platform = Platform(rawValue: platformText) else {
      throw Fault(message: "\"platform\" must be one of linux, android, ios, web.")
    }
    self.platform = platform
    user = try Self.text(body, "user", max: 256)
    previousToken = try Self.text(body, "previous_token", max: 4096)
    let id = try Self.text(body, "device_id", max: 64)
    let secret = try Self.text(body, "device_secret", max: 256)
    switch (id, secret) {
    case (let id?, let secret?): device = (id, secret)
    case (nil, nil): device = nil
    default: throw Fault(message: "\"device_id\" and \"device_secret\" come together or not at all.")
    }
  }

  private static func text(_ body: JSONValue, _ name: String, max: Int) throws(Fault) -> String? {
    guard let value = body[name], !value.isNull else { return nil }
    guard let text = value.string else { throw Fault(message: "\"\(name)\" must be a string.") }
    guard text.utf8.count <= max else {
      throw Fault(message: "\"\(name)\" is longer than \(max) bytes.")
    }
    return text
  }
}
