import JSONCore
import PushModel
import Seams

/// A bound stream as administration shows it.
struct StreamInspection: Sendable {
  enum Kind: Sendable {
    case appServer(SenderID, String)
    case device(String, DeviceNumber)
  }

  let reference: StreamRef
  let kind: Kind
  let peer: String
  let since: WallTime
  /// Messages written or taken and not acked: of the app server, or to the device.
  let pending: Int
  /// Upstream messages: not acked by the app server, or not answered to the device.
  let upstreamPending: Int
  let isDraining: Bool

  var json: JSONValue {
    var members: [JSONValue.Member] = [.init("stream", .string(reference.name))]
    switch kind {
    case .appServer(let sender, let jid):
      members.append(.init("kind", "app_server"))
      members.append(.init("sender_id", .string(sender.description)))
      members.append(.init("jid", .string(jid)))
    case .device(let id, let number):
      members.append(.init("kind", "device"))
      members.append(.init("device_id", .string(id)))
      members.append(.init("device", .number(number.value)))
    }
    members += [
      .init("peer", .string(peer)), .init("since", .number(since.ms)), .init("pending", .number(pending)),
      .init("upstream_pending", .number(upstreamPending)), .init("draining", .bool(isDraining)),
    ]
    return .object(members)
  }
}

extension StreamRef {
  /// As administration names it: `LOOP-NUMBER`.
  var name: String { "\(loop)-\(stream)" }

  init?(name: String) {
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let loop = UInt8(parts[0]), let stream = UInt32(parts[1]) else { return nil }
    self.init(loop: loop, stream: stream)
  }
}
