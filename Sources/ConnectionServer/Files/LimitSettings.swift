import PushModel

/// The limits that may be set by name, with their units.
package enum LimitSettings {
  package struct Entry: Sendable {
    package let name: String
    package let help: String
    let apply: @Sendable (inout Limits, Int) -> Void
  }

  package static let all: [Entry] = [
    Entry(name: "stanza-bytes", help: "largest stanza after login, bytes") { $0.stanzaBytesMax = $1 },
    Entry(name: "payload-bytes", help: "largest payload, bytes of decoded keys and values") {
      $0.payloadBytesMax = $1
    },
    Entry(name: "pending-per-stream", help: "messages a stream may have unacked") {
      $0.pendingPerStreamMax = $1
    },
    Entry(name: "held-per-stream", help: "messages beyond that which are still taken") {
      $0.heldPerStreamMax = $1
    },
    Entry(name: "streams-per-sender", help: "app server streams of one sender id") {
      $0.streamsPerSenderMax = $1
    },
    Entry(name: "upstream-pending-per-device", help: "upstream messages a device may have unanswered") {
      $0.upstreamPendingPerDeviceMax = $1
    },
    Entry(name: "stored-per-device", help: "non-collapsible messages stored for a device") {
      $0.storedPerDeviceMax = $1
    },
    Entry(name: "collapse-keys-per-device", help: "collapse keys stored for a device") {
      $0.collapseKeysPerDeviceMax = $1
    },
    Entry(name: "topic-payload-bytes", help: "largest payload of a topic message, bytes") {
      $0.topicPayloadBytesMax = $1
    },
    Entry(name: "topics-per-token", help: "topics of a registration") { $0.topicsPerTokenMax = $1 },
    Entry(name: "condition-topics", help: "topics named in a condition, at most 64") {
      $0.conditionTopicsMax = min($1, 64)
    },
    Entry(name: "group-members", help: "members of a device group") { $0.groupMembersMax = $1 },
    Entry(name: "fanouts-per-project", help: "topic messages of a project under way at once") {
      $0.fanoutsPerProjectMax = $1
    },
    Entry(name: "write-backlog-bytes", help: "unread output after which a connection is closed") {
      $0.writeBacklogBytesMax = $1
    },
    Entry(name: "assertion-leeway-seconds", help: "how far clocks of service accounts may run ahead") {
      $0.assertionLeewaySeconds = $1
    },
    Entry(name: "login-seconds", help: "from connecting to a bound stream") {
      $0.loginDeadline = .seconds($1)
    },
    Entry(name: "keepalive-seconds", help: "silence after which a space is sent") {
      $0.keepaliveIdle = .seconds($1)
    },
    Entry(name: "dead-seconds", help: "silence after which a peer is given up") {
      $0.deadAfter = .seconds($1)
    },
  ]
}

extension Limits {
  /// The defaults with some of them replaced.
  init(settings: [String: Int]) throws(ServerFault) {
    self.init()
    for (name, value) in settings.sorted(by: { $0.key < $1.key }) {
      guard let entry = LimitSettings.all.first(where: { $0.name == name }) else {
        throw ServerFault(
          "There is no limit \"\(name)\". Known: \(LimitSettings.all.map(\.name).joined(separator: ", ")).")
      }
      guard value >= 1 else { throw ServerFault("The limit \"\(name)\" must be 1 or more, not \(value).") }
      entry.apply(&self, value)
    }
  }
}
