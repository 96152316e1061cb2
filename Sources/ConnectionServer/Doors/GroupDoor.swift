import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Seams
import Stores
import TLSCore

/// `/fcm/notification`: device groups.
/// - Source: FCM, managing device groups.
struct GroupDoor: Sendable {
  let context: ServerContext

  func answer(_ route: HTTPRoute, _ request: HTTPRequest) async -> HTTPResponse {
    guard let project = CallerCheck.project(request.fields, context) else {
      return LegacyAnswer.unauthorized(isMissing: HTTPCredential(request.fields) == .missing)
    }
    guard let named = request.fields["project_id"], !named.isEmpty else {
      return ManagementAnswer.error("project_id is missing")
    }
    guard context.accounts.project(named: named)?.sender == project.sender else {
      return LegacyAnswer.unauthorized(isMissing: false)
    }
    do {
      switch route {
      case .findGroup, .findGroupGCM: return try await find(request, project)
      default: return try await change(request.body, project)
      }
    } catch let fault as ManagementFault {
      return fault.response
    } catch {
      return ManagementAnswer.error("InternalServerError", status: 503)
    }
  }

  private func find(_ request: HTTPRequest, _ project: Project) async throws -> HTTPResponse {
    guard let name = RequestTarget(request.target).query["notification_key_name"], !name.isEmpty else {
      throw ManagementFault("notification_key_name is missing")
    }
    guard let group = try await context.store.group(named: name, sender: project.sender) else {
      throw ManagementFault("notification_key not found")
    }
    return Self.answer(group.key)
  }

  private func change(_ body: [UInt8], _ project: Project) async throws -> HTTPResponse {
    let call = try GroupCall(body, limits: context.limits)
    switch call.operation {
    case .create:
      let key = NotificationKey(random: try Secrets.random(NotificationKey.randomByteCount)).text
      return try answer(
        try await context.store.createGroup(
          key: key, name: call.name ?? "", sender: project.sender, tokens: call.tokens,
          now: context.time.wall), key)
    case .add, .remove:
      let key = call.key ?? ""
      return try answer(
        try await context.store.changeGroup(
          key: key, name: call.name, sender: project.sender,
          adding: call.operation == .add ? call.tokens : [],
          removing: call.operation == .remove ? call.tokens : []), key)
    }
  }

  private static func answer(_ key: String) -> HTTPResponse {
    ManagementAnswer.json(["notification_key": .string(key)])
  }

  private func answer(_ outcome: GroupOutcome, _ key: String) throws(ManagementFault) -> HTTPResponse {
    switch outcome {
    case .done(let group): return Self.answer(group.key)
    case .deleted: return Self.answer(key)
    case .nameTaken: throw ManagementFault("notification_key already exists")
    case .notFound: throw ManagementFault("notification_key not found")
    case .nameMismatch:
      throw ManagementFault("notification_key_name doesn't match the group name of the notification_key")
    case .noValidTokens: throw ManagementFault("no valid registration ids")
    case .tooManyMembers:
      throw ManagementFault("a group has at most \(context.limits.groupMembersMax) registration ids")
    }
  }
}
