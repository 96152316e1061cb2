import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Seams
import Stores
import TLSCore

/// `POST /v1/projects/{p}/registrations/{token}/topicSubscriptions?topic_name=T` and
/// `DELETE …/topicSubscriptions/T`: a registration joins or leaves a topic.
///
/// Who may: the device itself, with HTTP Basic of its id and secret, and who holds the project's API key, its server
/// key, or a bearer token that may send.
/// - Source: the calls that current SDKs make.
struct TopicSubscriptionAPI: Sendable {
  let context: ServerContext

  func subscribe(project id: String, token: String, _ request: APIRequest) async -> APIResponse {
    var name = request.query["topic_name"]
    if name == nil, !request.body.isEmpty {
      name = (try? JSONValue(parsing: request.body))?["topic_name"]?.string
    }
    guard let name else { return .invalid("Name the topic: ?topic_name=…") }
    return await change(id, token, name, isSubscribed: true, request)
  }

  func unsubscribe(
    project id: String, token: String, topic name: String, _ request: APIRequest
  ) async -> APIResponse {
    await change(id, token, name, isSubscribed: false, request)
  }

  private func change(
    _ id: String, _ token: String, _ name: String, isSubscribed: Bool, _ request: APIRequest
  ) async -> APIResponse {
    guard let project = context.accounts.project(named: id) else {
      return .notFound("There is no project \"\(id.prefix(64))\".")
    }
    guard let topic = TopicName(name.hasPrefix("/topics/") ? String(name.dropFirst(8)) : name) else {
      return .invalid("Topic name format is invalid")
    }
    do {
      if let refusal = try await refusal(project, token, request) { return refusal }
      if let wait = context.accounts.sender(project.sender)?.rates.topicChanges?.take(
        now: context.time.moment)
      {
        return .exhausted("Too many topic subscriptions are changed", retryAfter: wait)
      }
      let outcomes = try await context.store.change(
        [
          SubscriptionChange(token: token, sender: project.sender, topic: topic, isSubscribed: isSubscribed)
        ], now: context.time.wall)
      return answer(outcomes.first ?? .unknownToken, project, token, topic, isSubscribed, request)
    } catch let fault as StoreFault {
      return RegistrationAPI.answer(fault)
    } catch {
      return .fault(500, "INTERNAL", "Internal error encountered.")
    }
  }

  /// Nil when the caller may.
  private func refusal(
    _ project: Project, _ token: String, _ request: APIRequest
  ) async throws -> APIResponse? {
    if let key = request.headers["x-goog-api-key"] {
      guard context.accounts.key(key, .api)?.sender == project.sender else {
        return .fault(
          401, "UNAUTHENTICATED", "The header x-goog-api-key does not hold the project's API key.")
      }
      return nil
    }
    switch caller(project, request) {
    case .allowed: return nil
    case .refused(let response): return response
    case .device: break
    }
    guard let device = RegistrationAPI.basic(request.headers["authorization"]) else {
      return .fault(
        401, "UNAUTHENTICATED",
        "Use HTTP Basic with device_id and device_secret, or the header x-goog-api-key.")
    }
    guard let found = try await context.store.credentials(of: device.user),
      Secrets.areEqual(found.secretHash, try Secrets.sha256(Array(device.password.utf8)))
    else { return .fault(401, "UNAUTHENTICATED", "The device id or its secret is wrong.") }
    guard found.registrations.contains(where: { $0.token == token && $0.sender == project.sender }) else {
      return .notFound("The device has no such registration.")
    }
    return nil
  }

  private enum Caller {
    case allowed
    case refused(APIResponse)
    /// Neither a bearer token nor a server key came.
    case device
  }

  private func caller(_ project: Project, _ request: APIRequest) -> Caller {
    var fields = HTTPFields()
    fields.append("authorization", request.headers["authorization"] ?? "")
    switch HTTPCredential(fields, query: request.query) {
    case .bearer(let token):
      switch BearerCheck(context: context).check(token, now: context.time.wall) {
      case .failure(let fault): return .refused(APIResponse(fault))
      case .success(let grant) where !grant.maySend: return .refused(APIResponse(.insufficientScope))
      case .success(let grant) where !grant.allows(project):
        return .refused(APIResponse(.noPermission(project: project.id)))
      case .success: return .allowed
      }
    case .key(let text):
      let isFine = context.accounts.key(text.trimmed, .server)?.sender == project.sender
      return isFine ? .allowed : .refused(APIResponse(.badCredentials))
    case .missing, .other: return .device
    }
  }

  private func answer(
    _ outcome: SubscriptionOutcome, _ project: Project, _ token: String, _ topic: TopicName,
    _ isSubscribed: Bool, _ request: APIRequest
  ) -> APIResponse {
    switch outcome {
    case .unchanged where !isSubscribed && request.query["allow_missing"] != "true":
      .notFound("The registration is not subscribed to this topic.")
    case .changed, .unchanged:
      isSubscribed
        ? .json([
          "name": .string(
            "projects/\(project.id)/registrations/\(token)/topicSubscriptions/\(topic.text)")
        ]) : .json([:])
    case .unknownToken: .notFound("There is no active registration with this token.")
    case .senderMismatch:
      .fault(403, "PERMISSION_DENIED", "The registration belongs to another project.")
    case .tooManyTopics:
      .fault(
        429, "RESOURCE_EXHAUSTED",
        "TOO_MANY_TOPICS: a registration has at most \(context.limits.topicsPerTokenMax) topics.")
    }
  }
}

extension APIResponse {
  /// A fault in Google's form.
  init(_ fault: V1Fault) {
    let response = V1Answer.fault(fault)
    self.init(
      status: response.status, headers: response.fields.all.map { ($0.name, $0.value) }, body: response.body)
  }
}
