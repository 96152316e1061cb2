import Bytes
import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Seams
import Stores
import TLSCore

/// The instance id calls: topics of registrations, and what is known of one.
/// - Source: Instance ID server reference.
struct InstanceDoor: Sendable {
  let context: ServerContext

  func answer(_ route: HTTPRoute, _ values: [String], _ request: HTTPRequest) async -> HTTPResponse {
    guard let project = CallerCheck.project(request.fields, context) else {
      return LegacyAnswer.unauthorized(isMissing: HTTPCredential(request.fields) == .missing)
    }
    func value(_ index: Int) -> String { values.indices.contains(index) ? values[index] : "" }
    do {
      switch route {
      case .topicAdd, .topicRemove:
        return try await change(request.body, project, isSubscribed: route == .topicAdd)
      case .joinTopic, .leaveTopic:
        return try await change(
          value(0), TopicBatch.topic(value(1), context.limits), project, isSubscribed: route == .joinTopic)
      case .tokenInfo:
        let query = RequestTarget(request.target).query
        return try await info(value(0), project, withDetails: query["details"] == "true")
      default: return try await importTokens(request.body, project)
      }
    } catch let fault as ManagementFault {
      return fault.response
    } catch {
      return ManagementAnswer.error("InternalServerError", status: 503)
    }
  }

  // MARK: Topics

  private func change(
    _ body: [UInt8], _ project: Project, isSubscribed: Bool
  ) async throws -> HTTPResponse {
    let batch = try TopicBatch(body, limits: context.limits)
    if let refused = overRate(project, batch.tokens.count) { return refused }
    let outcomes = try await context.store.change(
      batch.tokens.map {
        SubscriptionChange(token: $0, sender: project.sender, topic: batch.topic, isSubscribed: isSubscribed)
      }, now: context.time.wall)
    return TopicBatch.answer(
      zip(batch.tokens, outcomes).map { token, outcome in
        switch outcome {
        case .changed, .unchanged: .done
        case .unknownToken: .error(RegistrationToken(token) == nil ? "INVALID_ARGUMENT" : "NOT_FOUND")
        case .senderMismatch: .error("PERMISSION_DENIED")
        case .tooManyTopics: .error("TOO_MANY_TOPICS")
        }
      })
  }

  private func change(
    _ token: String, _ topic: TopicName, _ project: Project, isSubscribed: Bool
  ) async throws -> HTTPResponse {
    guard RegistrationToken(token) != nil else { throw ManagementFault.malformedToken }
    if let refused = overRate(project, 1) { return refused }
    let outcomes = try await context.store.change(
      [SubscriptionChange(token: token, sender: project.sender, topic: topic, isSubscribed: isSubscribed)],
      now: context.time.wall)
    switch outcomes.first {
    case .changed?, .unchanged?: return ManagementAnswer.json([:])
    case .senderMismatch?: throw ManagementFault.senderMismatch
    case .tooManyTopics?: throw ManagementFault("TOO_MANY_TOPICS", status: 429)
    case .unknownToken?, nil: throw ManagementFault.unknownToken
    }
  }

  /// The answer when the project changes too many subscriptions; nil when it may.
  private func overRate(_ project: Project, _ count: Int) -> HTTPResponse? {
    guard
      let wait = context.accounts.sender(project.sender)?.rates.topicChanges?.take(
        count, now: context.time.moment)
    else { return nil }
    var response = ManagementAnswer.error("RESOURCE_EXHAUSTED", status: 429)
    response.fields.append("retry-after", String(wait))
    return response
  }

  // MARK: One registration

  private func info(
    _ token: String, _ project: Project, withDetails: Bool
  ) async throws -> HTTPResponse {
    guard RegistrationToken(token) != nil else { throw ManagementFault.malformedToken }
    guard var found = try await context.store.lookUp([token]).first ?? nil else {
      throw ManagementFault.unknownToken
    }
    if case .alias(let canonical) = found.state, let next = try await context.store.lookUp([canonical]).first,
      let next
    {
      found = next
    }
    guard case .active = found.state else { throw ManagementFault.unknownToken }
    guard found.sender == project.sender else { throw ManagementFault.senderMismatch }
    var members: [JSONValue.Member] = [
      .init("application", .string(found.app)),
      .init("authorizedEntity", .string(found.sender.description)),
      .init("platform", .string(found.platform == .web ? "WEBPUSH" : found.platform.rawValue.uppercased())),
      .init("scope", "*"),
    ]
    if found.platform == .android { members.append(.init("attestStatus", "UNKNOWN")) }
    if withDetails {
      members.append(.init("connectionType", "OTHER"))
      members.append(.init("connectDate", .string(Self.day(found.lastSeen))))
      let topics = try await context.store.topics(of: found.token) ?? []
      if !topics.isEmpty {
        let list = topics.map {
          JSONValue.Member($0.topic.text, ["addDate": .string(Self.day($0.since))])
        }
        members.append(.init("rel", ["topics": .object(list)]))
      }
    }
    return ManagementAnswer.json(.object(members))
  }

  private static func day(_ time: WallTime) -> String {
    let civil = CivilTime(time)
    func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(civil.year)-\(padded(civil.month))-\(padded(civil.day))"
  }

  // MARK: Tokens of APNs

  /// Registers an iOS app for each token; the same token again gives the same registration.
  private func importTokens(_ body: [UInt8], _ project: Project) async throws -> HTTPResponse {
    let request = try TokenImport(body)
    var results: [JSONValue] = []
    for token in request.tokens {
      guard TokenImport.isWellFormed(token) else {
        results.append(["apns_token": .string(token), "status": "INVALID_ARGUMENT"])
        continue
      }
      let registration = try await register(token.lowercased(), request, project)
      results.append([
        "apns_token": .string(token), "status": "OK", "registration_token": .string(registration.token),
      ])
    }
    return ManagementAnswer.json(["results": .array(results)])
  }

  private func register(
    _ token: String, _ request: TokenImport, _ project: Project
  ) async throws -> Registration {
    // Keyed hashes of what names the app instance, so that nobody else can make them.
    let name = "apns \(project.sender) \(request.application) \(request.isSandbox) \(token)"
    var bytes: [UInt8] = []
    for part in 0..<4 {
      let hash = Array("\(part) \(name)".utf8).withUnsafeBytes { context.keys.token($0) }
      bytes += hash.hex.hexBytes ?? []
    }
    return try await context.store.register(
      RegistrationRequest(
        token: RegistrationToken(random: Array(bytes[..<RegistrationToken.randomByteCount])).text,
        deviceID: Secrets.base64URL(Array(bytes[48..<64])),
        // Nobody has this secret: the device is reached through its token alone.
        secretHash: try Secrets.random(32), sender: project.sender, app: request.application,
        platform: .ios, user: nil, previousToken: nil), now: context.time.wall)
  }
}
