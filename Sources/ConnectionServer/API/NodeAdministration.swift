import JSONCore
import PushModel
import Seams
import Stores

/// The nodes that share the store, for administration.
struct NodeAdministration: Sendable {
  let context: ServerContext

  func list() async throws -> APIResponse {
    var nodes: [NodeSummary] = []
    if let bus = context.bus {
      nodes = try await withCheckedThrowingContinuation { continuation in
        bus.nodes { continuation.resume(with: $0) }
      }
    }
    return .json(["nodes": .array(nodes.map(Self.show))])
  }

  private static func show(_ node: NodeSummary) -> JSONValue {
    .object([
      .init("node", .number(node.number)), .init("name", .string(node.name)),
      .init("alive", .bool(node.isAlive)), .init("self", .bool(node.isSelf)),
      .init("devices", .number(node.devices)), .init("started_ms", .number(node.started.ms)),
    ])
  }
}
