import JSONCore
import PushModel
import Stores
import Telemetry

/// `/admin/v1/faults`: what tests of senders ask the server to do wrong.
struct FaultAdministration: Sendable {
  let context: ServerContext

  func answer(_ path: [String], _ request: APIRequest) -> APIResponse {
    switch (path.count, request.method) {
    case (1, "GET"):
      return .json(["faults": .array(context.faults.armed.map { Self.show($0.id, $0.order) })])
    case (1, "POST"): return arm(request)
    case (1, "DELETE"): return .json(["disarmed": .number(context.faults.disarm(nil))])
    case (2, "DELETE"):
      guard let id = Int(path[1]), context.faults.disarm(id) > 0 else {
        return .notFound("No fault with this id is armed; GET /admin/v1/faults lists them.")
      }
      return .json(["id": .string(path[1]), "disarmed": 1])
    default: return .methodNotAllowed("GET, POST or DELETE")
    }
  }

  private func arm(_ request: APIRequest) -> APIResponse {
    do {
      let body = try JSONValue(parsing: request.body)
      let order = try FaultOrder(body) { context.accounts.project($0)?.sender }
      guard let id = context.faults.arm(order) else {
        return .exhausted("\(Faults.ordersMax) faults are armed; DELETE /admin/v1/faults", retryAfter: 1)
      }
      context.log.warning("A fault was armed", ["id": .init(id), "kind": .init(order.fault.kind.name)])
      return .json(Self.show(id, order), status: 201)
    } catch let refused as FaultOrder.Refused {
      return .invalid(refused.reason)
    } catch {
      return .invalid("The body is not a JSON object: \(error)")
    }
  }

  private static func show(_ id: Int, _ order: FaultOrder) -> JSONValue {
    .object([.init("id", .string(String(id)))] + (order.json.members ?? []))
  }
}
