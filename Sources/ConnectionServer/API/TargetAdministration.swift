import JSONCore
import PushModel
import Seams
import Stores
import TLSCore

/// `/admin/v1/topics`, `/admin/v1/users`, `/admin/v1/groups`, `/admin/v1/fanouts`.
///
/// The project is named by `?project=ID` or by `"project"` in the body; without it the first one is meant.
struct TargetAdministration: Sendable {
  struct Fault: Error { var response: APIResponse }

  let context: ServerContext

  /// - Parameter path: Behind `/admin/v1`.
  func answer(_ path: [String], _ request: APIRequest) async throws -> APIResponse {
    do {
      let body = request.body.isEmpty ? JSONValue.null : try Self.parse(request.body)
      let project = try project(request.query["project"] ?? body["project"]?.string)
      switch (path[0], path.count, request.method) {
      case ("topics", 1, "GET"): return try await listTopics(project, request)
      case ("topics", 2, "GET"): return try await showTopic(try topic(path[1]), project, request)
      case ("topics", 3, "POST") where path[2] == "subscribe" || path[2] == "unsubscribe":
        return try await subscribe(
          try topic(path[1]), project, tokens: try tokens(body, "tokens"),
          isSubscribed: path[2] == "subscribe")
      case ("users", 1, "GET"): return try await listUsers(project, request)
      case ("users", 2, "GET"): return try await showUser(path[1], project)
      case ("users", 3, "GET") where path[2] == "badge": return try await showBadge(path[1], project)
      case ("users", 3, "PUT") where path[2] == "badge":
        guard let badge = body["badge"]?.int, badge >= 0 else {
          return .invalid("\"badge\" must be a number from 0 on.")
        }
        return try await setBadge(badge, path[1], project)
      case ("users", 3, "DELETE") where path[2] == "badge": return try await setBadge(0, path[1], project)
      case ("groups", 1, "GET"): return try await listGroups(project, request)
      case ("groups", 1, "POST"): return try await createGroup(body, project)
      case ("groups", 2, "GET"): return .json(Self.show(try await group(path[1], project)))
      case ("groups", 3, "POST") where path[2] == "add" || path[2] == "remove":
        return try await changeGroup(
          path[1], project, tokens: try tokens(body, "tokens"), isAdding: path[2] == "add")
      case ("fanouts", 1, "GET"): return try await listFanouts()
      case ("topics", _, _), ("users", _, _), ("groups", _, _), ("fanouts", _, _):
        return .methodNotAllowed("GET, POST, PUT or DELETE")
      default: return .notFound("There is nothing at this path.")
      }
    } catch let fault as Fault {
      return fault.response
    }
  }

  // MARK: Reading requests

  private static func parse(_ body: [UInt8]) throws(Fault) -> JSONValue {
    do { return try JSONValue(parsing: body) } catch {
      throw Fault(response: .invalid("The body is not JSON: \(error)"))
    }
  }

  private func project(_ id: String?) throws(Fault) -> Project {
    let found = id.map { context.accounts.project($0) } ?? context.accounts.projects.first
    guard let found else { throw Fault(response: .invalid("\"project\" must name a project.")) }
    return found
  }

  private func topic(_ text: String) throws(Fault) -> TopicName {
    guard let topic = TopicName(text) else {
      throw Fault(
        response: .invalid("A topic's name has 1 to 900 characters of a-z, A-Z, 0-9 and - _ . ~ %."))
    }
    return topic
  }

  private func tokens(_ body: JSONValue, _ name: String) throws(Fault) -> [String] {
    guard let values = body[name]?.array, (1...context.limits.topicBatchTokensMax).contains(values.count)
    else {
      throw Fault(
        response: .invalid(
          "\"\(name)\" must be an array of 1 to \(context.limits.topicBatchTokensMax) tokens."))
    }
    let tokens = values.compactMap(\.string)
    guard tokens.count == values.count else {
      throw Fault(response: .invalid("\"\(name)\" must hold strings only."))
    }
    return tokens
  }

  private func max(_ request: APIRequest) -> Int {
    Swift.max(1, min(1000, Int(request.query["max"] ?? "") ?? 100))
  }

  /// A page of a list, with what to give as `after` for the next one; null when there is none.
  ///
  /// - Parameter rows: One more than the page holds, if there are so many.
  private static func page<Row>(
    _ name: String, _ rows: [Row], max: Int, cursor: (Row) -> JSONValue, _ show: (Row) -> JSONValue,
    _ more: [JSONValue.Member] = []
  ) -> APIResponse {
    let page = rows.prefix(max)
    let next = rows.count > max ? page.last.map(cursor) ?? .null : .null
    return .json(.object(more + [.init(name, .array(page.map(show))), .init("next", next)]))
  }

  // MARK: Topics

  private func listTopics(_ project: Project, _ request: APIRequest) async throws -> APIResponse {
    let max = max(request)
    let found = try await context.store.topics(
      sender: project.sender, after: request.query["after"].flatMap { TopicName($0) }, max: max + 1)
    return Self.page(
      "topics", found, max: max, cursor: { .string($0.topic.text) },
      { ["topic": .string($0.topic.text), "subscribers": .number($0.subscribers)] })
  }

  private func showTopic(
    _ topic: TopicName, _ project: Project, _ request: APIRequest
  ) async throws -> APIResponse {
    let after = request.query["after"].flatMap { Int64($0) }.map { RegistrationNumber($0) }
    let max = max(request)
    let page = try await context.store.subscribers(
      of: topic, sender: project.sender, after: after, max: max + 1)
    return Self.page(
      "subscribers", page, max: max, cursor: { .number($0.number.value) }, Self.show,
      [
        .init("topic", .string(topic.text)), .init("sender_id", .string(project.sender.description)),
      ])
  }

  private func subscribe(
    _ topic: TopicName, _ project: Project, tokens: [String], isSubscribed: Bool
  ) async throws -> APIResponse {
    let outcomes = try await context.store.change(
      tokens.map {
        SubscriptionChange(token: $0, sender: project.sender, topic: topic, isSubscribed: isSubscribed)
      }, now: context.time.wall)
    return .json([
      "topic": .string(topic.text), "changed": .number(outcomes.count { $0 == .changed }),
      "failed": .number(outcomes.count { $0 != .changed && $0 != .unchanged }),
      "results": .array(
        zip(tokens, outcomes).map { ["token": .string($0), "outcome": .string(Self.name($1))] }),
    ])
  }

  private static func name(_ outcome: SubscriptionOutcome) -> String {
    switch outcome {
    case .changed: "changed"
    case .unchanged: "unchanged"
    case .unknownToken: "unknown_token"
    case .senderMismatch: "sender_mismatch"
    case .tooManyTopics: "too_many_topics"
    }
  }

  // MARK: Users

  private func listUsers(_ project: Project, _ request: APIRequest) async throws -> APIResponse {
    let max = max(request)
    let found = try await context.store.users(
      sender: project.sender, after: request.query["after"], max: max + 1)
    return Self.page(
      "users", found, max: max, cursor: { .string($0.user) },
      { ["user": .string($0.user), "registrations": .number($0.registrations), "badge": .number($0.badge)] })
  }

  private func showUser(_ user: String, _ project: Project) async throws -> APIResponse {
    let found = try await context.store.devices(ofUser: user, sender: project.sender)
    return .json([
      "user": .string(user), "sender_id": .string(project.sender.description), "badge": .number(found.badge),
      "devices": .array(found.registrations.map(Self.show)),
    ])
  }

  private func showBadge(_ user: String, _ project: Project) async throws -> APIResponse {
    let found = try await context.store.devices(ofUser: user, sender: project.sender, max: 0)
    return .json(["user": .string(user), "badge": .number(found.badge)])
  }

  private func setBadge(_ badge: Int64, _ user: String, _ project: Project) async throws -> APIResponse {
    try await context.store.setBadge(badge, ofUser: user, sender: project.sender)
    return .json(["user": .string(user), "badge": .number(badge)])
  }

  // MARK: Groups

  private func listGroups(_ project: Project, _ request: APIRequest) async throws -> APIResponse {
    let max = max(request)
    let found = try await context.store.groups(
      sender: project.sender, after: request.query["after"], max: max + 1)
    return Self.page("groups", found, max: max, cursor: { .string($0.name) }, Self.show)
  }

  private func createGroup(_ body: JSONValue, _ project: Project) async throws -> APIResponse {
    guard let name = body["name"]?.string, (1...256).contains(name.utf8.count) else {
      return .invalid("\"name\" must be a string of 1 to 256 bytes.")
    }
    let tokens = try tokens(body, "tokens")
    let key = NotificationKey(random: try Secrets.random(NotificationKey.randomByteCount))
    return answer(
      try await context.store.createGroup(
        key: key.text, name: name, sender: project.sender, tokens: tokens, now: context.time.wall))
  }

  /// - Parameter text: A notification key or a group's name.
  private func group(_ text: String, _ project: Project) async throws -> DeviceGroup {
    if let found = try await context.store.group(key: text), found.sender == project.sender { return found }
    guard let found = try await context.store.group(named: text, sender: project.sender) else {
      throw Fault(response: .notFound("There is no group with this key or name."))
    }
    return found
  }

  private func changeGroup(
    _ text: String, _ project: Project, tokens: [String], isAdding: Bool
  ) async throws -> APIResponse {
    let key = try await group(text, project).key
    return answer(
      try await context.store.changeGroup(
        key: key, sender: project.sender, adding: isAdding ? tokens : [], removing: isAdding ? [] : tokens))
  }

  private func answer(_ outcome: GroupOutcome) -> APIResponse {
    switch outcome {
    case .done(let group): .json(Self.show(group))
    case .deleted: .json(["state": "deleted"])
    case .nameTaken: .fault(409, "ALREADY_EXISTS", "notification_key already exists")
    case .notFound: .notFound("notification_key not found")
    case .nameMismatch:
      .invalid("notification_key_name doesn't match the group name of the notification_key")
    case .noValidTokens: .invalid("no valid registration ids")
    case .tooManyMembers:
      .invalid("A group has at most \(context.limits.groupMembersMax) members.")
    }
  }

  // MARK: Fan-outs

  private func listFanouts() async throws -> APIResponse {
    let found = try await context.store.fanouts(since: context.time.wall)
    return .json(["fanouts": .array(found.map(Self.show))])
  }

  // MARK: Showing

  static func show(_ row: NumberedRegistration) -> JSONValue {
    [
      "number": .number(row.number.value), "token": .string(row.registration.token),
      "device": .number(row.registration.device.value), "app": .string(row.registration.app),
      "platform": .string(row.registration.platform.rawValue),
      "user": row.registration.user.map { .string($0) } ?? .null,
      "last_seen": .number(row.registration.lastSeen.ms),
    ]
  }

  static func show(_ group: DeviceGroup) -> JSONValue {
    [
      "notification_key": .string(group.key), "name": .string(group.name),
      "sender_id": .string(group.sender.description), "created_at": .number(group.createdAt.ms),
      "members": .array(group.members.map { .string($0.registration.token) }),
    ]
  }

  static func show(_ fanout: FanoutProgress) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("audience", .string(fanout.audience.text)),
      .init("sender_id", .string(fanout.sender.description)),
      .init("state", fanout.isDone ? "done" : "running"), .init("begun", .number(fanout.begun.ms)),
      .init("expires", .number(fanout.expires.ms)), .init("matched", .number(fanout.counts.matched)),
      .init("waiting", .number(fanout.counts.waiting)),
    ]
    for (state, count) in fanout.counts.ends { members.append(.init(state.name, .number(count))) }
    return .object(members)
  }
}
