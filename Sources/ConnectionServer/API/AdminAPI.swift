import JSONCore
import PushModel
import Seams
import Stores
import TLSCore
import Telemetry

/// The admin surface: health, metrics, administration, inspection.
///
/// Listens on loopback only.
struct AdminAPI: Sendable {
  let context: ServerContext
  /// Starts a drain; the process ends when it is done.
  let drain: @Sendable () -> Void

  func answer(_ request: APIRequest) async -> APIResponse {
    switch request.path {
    case ["healthz"]: return .text("ok\n")
    case ["readyz"]:
      return context.isDraining ? .text("draining\n", status: 503) : .text("ready\n")
    case ["metrics"]:
      await refreshGauges()
      return APIResponse(
        status: 200, headers: [("Content-Type", Metrics.contentType)], body: context.metrics.exposition())
    default: break
    }
    guard request.path.count >= 3, request.path.prefix(2) == ["admin", "v1"] else {
      return .notFound("There is nothing at this path.")
    }
    guard let header = request.headers["authorization"], header.hasPrefix("Bearer "),
      context.accounts.key(String(header.dropFirst(7)).trimmed, .admin) != nil
    else {
      return .fault(
        401, "UNAUTHENTICATED", "Send Authorization: Bearer with the text of credentials/admin-key.")
    }
    do {
      return try await administer(Array(request.path.dropFirst(2)), request)
    } catch let fault as StoreFault {
      return RegistrationAPI.answer(fault)
    } catch {
      context.log.error("An admin call failed", ["error": .init("\(error)")])
      return .fault(500, "INTERNAL", "Internal error encountered.")
    }
  }

  private func administer(_ path: [String], _ request: APIRequest) async throws -> APIResponse {
    switch (path[0], path.count, request.method) {
    case ("projects", 1, "GET"):
      return .json(["projects": .array(context.accounts.projects.map(Self.show))])
    case ("projects", 1, "POST"): return try await createProject(request)
    case ("projects", 3, "POST") where path[2] == "service-accounts":
      guard let project = context.accounts.project(path[1]) else {
        return .notFound("There is no project of this id.")
      }
      return .json(
        try await context.accounts.serviceAccounts.make(for: project, in: context.store), status: 201)
    case ("keys", 1, "GET"):
      let keys = try await context.store.keys()
      return .json(["keys": .array(keys.map(Self.show))])
    case ("keys", 1, "POST"): return try await createKey(request)
    case ("keys", 2, "DELETE"): return try await revokeKey(path[1])
    case ("tokens", 1, "GET"):
      return try await RegistrationAdministration(context: context).list(request)
    case ("tokens", 1, "POST"):
      return try await RegistrationAdministration(context: context).register(request)
    case ("tokens", 2, "GET"): return try await showToken(path[1])
    case ("tokens", 2, "DELETE"):
      guard try await context.unregister(path[1]) else {
        return .notFound("There is no active registration with this token.")
      }
      return .json(["token": .string(path[1]), "state": "unregistered"])
    case ("messages", 1, "GET"): return try await MessageInspection(context: context).ofToken(request)
    case ("messages", 3, "GET"):
      return try await MessageInspection(context: context).ofMessage(sender: path[1], id: path[2])
    case ("nodes", 1, "GET"): return try await NodeAdministration(context: context).list()
    case ("send", 1, "POST"): return await SendAdministration(context: context).answer(request)
    case ("drain", 1, "POST"):
      return try await StreamAdministration(context: context).drain(request, whole: drain)
    case ("streams", 1, "GET"): return try await StreamAdministration(context: context).list(request)
    case ("faults", _, _): return FaultAdministration(context: context).answer(path, request)
    case ("devices", 3, "GET") where path[2] == "messages":
      return try await DeviceAdministration(context: context).messages(path[1], request)
    case ("devices", 3, "POST") where path[2] == "upstream":
      return try await DeviceAdministration(context: context).upstream(path[1], request)
    case ("topics", _, _), ("users", _, _), ("groups", _, _), ("fanouts", _, _):
      return try await TargetAdministration(context: context).answer(path, request)
    case ("projects", _, _), ("keys", _, _), ("tokens", _, _), ("messages", _, _), ("drain", _, _),
      ("send", 1, _),
      ("streams", _, _), ("devices", 3, _), ("nodes", _, _):
      return .methodNotAllowed("GET, POST or DELETE")
    default: return .notFound("There is nothing at this path.")
    }
  }

  private func refreshGauges() async {
    if let counts = try? await context.store.counts() {
      storedMessages.set(Int64(counts[StoreTable.messages.rawValue] ?? 0))
      registrations.set(Int64(counts[StoreTable.registrations.rawValue] ?? 0))
    }
    residentBytes.set(ProcessFigures.residentBytes)
    processorTime.set(ProcessFigures.processorNs)
    openFiles.set(ProcessFigures.openFiles)
  }

  let storedMessages: Gauge
  let registrations: Gauge
  let residentBytes: Gauge
  let processorTime: Gauge
  let openFiles: Gauge

  init(context: ServerContext, drain: @escaping @Sendable () -> Void) {
    self.context = context
    self.drain = drain
    storedMessages = context.metrics.gauge(.storedMessages)
    registrations = context.metrics.gauge(.registrations)
    residentBytes = context.metrics.gauge(.residentBytes)
    processorTime = context.metrics.gauge(.processorTime)
    openFiles = context.metrics.gauge(.openFiles)
    context.metrics.gauge(.startTime).set(context.time.wall.ms / 1000)
  }

  // MARK: Projects and keys

  private func createProject(_ request: APIRequest) async throws -> APIResponse {
    let body: JSONValue
    do { body = try JSONValue(parsing: request.body) } catch {
      return .invalid("The body is not a JSON object: \(error)")
    }
    guard let id = body["id"]?.string, (1...63).contains(id.utf8.count),
      id.utf8.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) || $0 == 45 })
    else { return .invalid("\"id\" must be 1 to 63 of a-z, 0-9 and -.") }
    guard let text = body["sender_id"]?.string ?? body["sender_id"]?.int.map(String.init),
      let sender = SenderID(text: text), sender.value > 0
    else { return .invalid("\"sender_id\" must be a number of 1 to 18 digits.") }
    let project = try await context.store.createProject(
      Project(id: id, sender: sender, createdAt: context.time.wall))
    context.accounts.add(project)
    context.bus?.send(.accounts, to: nil)
    let server = try await makeKey(.server, project)
    let api = try await makeKey(.api, project)
    var answer = Self.show(project).members ?? []
    answer.append(.init("server_key", .string(server)))
    answer.append(.init("api_key", .string(api)))
    return .json(.object(answer), status: 201)
  }

  private func createKey(_ request: APIRequest) async throws -> APIResponse {
    let body: JSONValue
    do { body = try JSONValue(parsing: request.body) } catch {
      return .invalid("The body is not a JSON object: \(error)")
    }
    guard let id = body["project"]?.string, let project = context.accounts.project(id) else {
      return .invalid("\"project\" must name a project.")
    }
    guard let purpose = AccountKey.Purpose(rawValue: body["purpose"]?.string ?? "server"),
      purpose != .admin
    else { return .invalid("\"purpose\" must be server or api.") }
    let text = try await makeKey(purpose, project)
    return .json(
      [
        "project": .string(id), "purpose": .string(purpose.rawValue), "key": .string(text),
        "id": .string(try Secrets.sha256(Array(text.utf8)).hexText),
      ], status: 201)
  }

  private func makeKey(_ purpose: AccountKey.Purpose, _ project: Project) async throws -> String {
    let text = try Credentials.newKey(purpose)
    let key = AccountKey(
      hash: try Secrets.sha256(Array(text.utf8)), purpose: purpose, sender: project.sender,
      createdAt: context.time.wall, hint: String(text.prefix(6)))
    try await context.store.addKey(key)
    context.accounts.add(key)
    context.bus?.send(.accounts, to: nil)
    return text
  }

  private func revokeKey(_ id: String) async throws -> APIResponse {
    guard let hash = id.hexBytes, try await context.store.revokeKey(hash: hash) else {
      return .notFound("There is no active key with this id; list them with GET /admin/v1/keys.")
    }
    context.accounts.removeKey(hash: hash)
    context.bus?.send(.accounts, to: nil)
    return .json(["id": .string(id), "state": "revoked"])
  }

  // MARK: Tokens

  private func showToken(_ token: String) async throws -> APIResponse {
    guard let found = try await context.store.lookUp([token]).first ?? nil else {
      return .notFound("No registration ever had this token.")
    }
    return .json(Self.show(found))
  }

  static func show(_ project: Project) -> JSONValue {
    [
      "id": .string(project.id), "sender_id": .string(project.sender.description),
      "created_at": .number(project.createdAt.ms),
    ]
  }

  static func show(_ key: AccountKey) -> JSONValue {
    [
      "id": .string(key.hash.hexText), "purpose": .string(key.purpose.rawValue),
      "sender_id": key.sender.map { .string($0.description) } ?? .null, "hint": .string(key.hint + "…"),
      "created_at": .number(key.createdAt.ms), "revoked": .bool(key.revoked),
    ]
  }

  static func show(_ row: Registration) -> JSONValue {
    var state: JSONValue = "active"
    var canonical: JSONValue = .null
    switch row.state {
    case .active: break
    case .alias(let token): (state, canonical) = ("alias", .string(token))
    case .unregistered: state = "unregistered"
    }
    return [
      "token": .string(row.token), "state": state, "canonical": canonical,
      "device": .number(row.device.value), "sender_id": .string(row.sender.description),
      "app": .string(row.app), "platform": .string(row.platform.rawValue),
      "user": row.user.map { .string($0) } ?? .null, "registered_at": .number(row.registeredAt.ms),
      "last_seen": .number(row.lastSeen.ms),
    ]
  }
}

extension String {
  /// The bytes that pairs of hex digits stand for; nil when it is none.
  var hexBytes: [UInt8]? {
    guard utf8.count.isMultiple(of: 2), !isEmpty else { return nil }
    var bytes: [UInt8] = []
    var rest = self[...]
    while !rest.isEmpty {
      guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
      bytes.append(byte)
      rest = rest.dropFirst(2)
    }
    return bytes
  }
}
