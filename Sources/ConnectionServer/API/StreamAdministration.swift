import JSONCore
import PushModel
import Seams
import Stores

/// `GET /admin/v1/streams` and `POST /admin/v1/drain`.
struct StreamAdministration: Sendable {
  let context: ServerContext

  func list(_ request: APIRequest) async throws -> APIResponse {
    let max = min(10_000, Int(request.query["max"] ?? "") ?? 1_000)
    guard max > 0 else { return .invalid("\"max\" must be 1 to 10000.") }
    let kind = request.query["kind"]
    guard [nil, "app_server", "device"].contains(kind) else {
      return .invalid("\"kind\" must be app_server or device.")
    }
    var sender: SenderID?
    if let text = request.query["sender_id"] {
      guard let found = SenderID(text: text) else { return .invalid("\"sender_id\" must be a number.") }
      sender = found
    }
    let wanted = sender
    let found = await context.gather { shard in
      var rows: [StreamInspection] = []
      if kind != "device" {
        for (_, stream) in shard.senderStreams.sorted(by: { $0.key < $1.key }) where rows.count < max {
          guard let session = stream as? AppServerSession else { continue }
          if let wanted, session.project.sender != wanted { continue }
          rows.append(session.inspection)
        }
      }
      if kind != "app_server", wanted == nil {
        for (_, stream) in shard.deviceStreams.sorted(by: { $0.key < $1.key }) where rows.count < max {
          if let session = stream as? DeviceSession { rows.append(session.inspection) }
        }
      }
      return rows
    }
    return .json(["streams": .array(found.flatMap(\.self).prefix(max).map(\.json))])
  }

  /// With an empty body the whole server; with `sender_id`, `project` or `stream` only those streams.
  func drain(_ request: APIRequest, whole: @Sendable () -> Void) async throws -> APIResponse {
    var body = JSONValue.object([])
    if !request.body.isEmpty {
      do { body = try JSONValue(parsing: request.body) } catch {
        return .invalid("The body is not a JSON object: \(error)")
      }
    }
    guard let members = body.members else { return .invalid("The body must be a JSON object.") }
    let known = ["sender_id", "project", "stream", "within_seconds"]
    for member in members where !known.contains(member.name) {
      return .invalid("There is no \"\(member.name.prefix(64))\": use \(known.joined(separator: ", ")).")
    }
    var deadline = context.configuration.drainDeadline
    if let value = body["within_seconds"] {
      guard let seconds = value.int, (1...3600).contains(seconds) else {
        return .invalid("\"within_seconds\" must be 1 to 3600.")
      }
      deadline = .seconds(seconds)
    }
    var wanted: @Sendable (AppServerSession) -> Bool
    if let text = body["stream"]?.string {
      guard let reference = StreamRef(name: text) else {
        return .invalid("\"stream\" must be the name of a stream: GET /admin/v1/streams lists them.")
      }
      wanted = { $0.reference == reference }
    } else if let text = body["sender_id"]?.string ?? body["sender_id"]?.int.map({ String($0) }) {
      guard let sender = SenderID(text: text) else { return .invalid("\"sender_id\" must be a number.") }
      wanted = { $0.project.sender == sender }
    } else if let id = body["project"]?.string {
      guard let project = context.accounts.project(id) else {
        return .invalid("\"project\" must name a project.")
      }
      wanted = { $0.project.sender == project.sender }
    } else {
      guard members.isEmpty else { return .invalid("Name a stream, a sender_id or a project as text.") }
      whole()
      return .json(["draining": true], status: 202)
    }
    let (pick, within) = (wanted, deadline)
    let drained = await context.gather { shard in
      let sessions = shard.senderStreams.values.compactMap { $0 as? AppServerSession }.filter(pick)
      for session in sessions { session.drain(within: within) }
      return sessions.map(\.reference.name)
    }.flatMap(\.self).sorted()
    guard !drained.isEmpty else { return .notFound("No stream of an app server matches.") }
    return .json(["draining": .array(drained.map { .string($0) })], status: 202)
  }
}
