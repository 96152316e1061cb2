import JSONCore
import PushModel
import Seams
import Stores

/// `GET` and `POST /admin/v1/tokens`: registrations, a page at a time, and a new one.
struct RegistrationAdministration: Sendable {
  let context: ServerContext

  /// Registrations in token order, of `project` or of all.
  ///
  /// `max` (1 to 1,000, 100 by default) bounds the page, `after` is `next` of the page before; `starting` leaves only
  /// tokens that begin so. Each row tells whether its device is connected.
  func list(_ request: APIRequest) async throws -> APIResponse {
    var sender: SenderID?
    if let id = request.query["project"] {
      guard let project = context.accounts.project(id) else {
        return .invalid("\"project\" must name a project.")
      }
      sender = project.sender
    }
    let max = Swift.max(1, min(1000, Int(request.query["max"] ?? "") ?? 100))
    let start = request.query["starting"] ?? ""
    var rows = try await context.store.registrations(
      sender: sender, after: request.query["after"] ?? Self.before(start), max: max + 1)
    if !start.isEmpty { rows.removeAll { !$0.token.hasPrefix(start) } }
    let page = Array(rows.prefix(max))
    let connected = await connected(Set(page.map(\.device)))
    let next: JSONValue = rows.count > max ? page.last.map { .string($0.token) } ?? .null : .null
    return .json([
      "tokens": .array(
        page.map { row in
          .object(
            (AdminAPI.show(row).members ?? []) + [.init("connected", .bool(connected.contains(row.device)))])
        }), "next": next,
    ])
  }

  /// The greatest text below every text that begins with `start`, or near enough: tokens are visible ASCII.
  private static func before(_ start: String) -> String? {
    guard let last = start.utf8.last, last > 32 else { return nil }
    return String(start.dropLast()) + String(UnicodeScalar(last - 1)) + "\u{7F}"
  }

  private func connected(_ devices: Set<DeviceNumber>) async -> Set<DeviceNumber> {
    guard !devices.isEmpty else { return [] }
    let found = await context.gather { shard in devices.filter { shard.devices[$0] != nil } }
    return found.reduce(into: []) { $0.formUnion($1) }
  }

  /// Registers a device as the project's API key would: `{"project":…,"app":…,"platform":…,"user":…}`.
  func register(_ request: APIRequest) async throws -> APIResponse {
    let body: JSONValue
    do { body = try JSONValue(parsing: request.body) } catch {
      return .invalid("The body is not a JSON object: \(error)")
    }
    let id = body["project"]?.string
    guard let project = id.map({ context.accounts.project($0) }) ?? context.accounts.projects.first else {
      return .invalid("\"project\" must name a project.")
    }
    let fields: RegistrationFields
    do { fields = try RegistrationFields(body) } catch { return .invalid(error.message) }
    var response = try await RegistrationAPI(context: context).register(fields, project)
    if response.status == 200 { response.status = 201 }
    return response
  }
}
