package import PushModel

/// The limits that may be set by name, with their units.
package enum LimitSettings {
  package struct Entry: Sendable {
    enum Place: Sendable {
      case number(any WritableKeyPath<Limits, Int> & Sendable)
      /// 0 is no limit.
      case rate(any WritableKeyPath<Limits, Int?> & Sendable)
      case seconds(any WritableKeyPath<Limits, Duration> & Sendable, least: Int = 1)
      case flag(any WritableKeyPath<Limits, Bool> & Sendable)
    }

    package let name: String
    package let help: String
    let place: Place
    /// The largest value that is taken, so that sums of limits stay far from an integer's end; larger ones count as this.
    let max: Int

    init(_ name: String, _ place: Place, _ help: String, max: Int = 1_000_000_000) {
      self.name = name
      self.help = help
      self.place = place
      self.max = max
    }

    var least: Int {
      switch place {
      case .number: 1
      case .rate, .flag: 0
      case .seconds(_, let least): least
      }
    }

    func apply(_ value: Int, to limits: inout Limits) {
      let value = min(value, max)
      switch place {
      case .number(let path): limits[keyPath: path] = value
      case .rate(let path): limits[keyPath: path] = value == 0 ? nil : value
      case .seconds(let path, _): limits[keyPath: path] = .seconds(value)
      case .flag(let path): limits[keyPath: path] = value != 0
      }
    }

    /// The value as it would be set; 0 for a rate that is off.
    package func value(in limits: Limits) -> Int {
      switch place {
      case .number(let path): limits[keyPath: path]
      case .rate(let path): limits[keyPath: path] ?? 0
      case .seconds(let path, _): Int(limits[keyPath: path].components.seconds)
      case .flag(let path): limits[keyPath: path] ? 1 : 0
      }
    }
  }

  package static let all: [Entry] = streams + payload + storage + targets + rates

  private static let streams: [Entry] = [
    Entry("stanza-bytes", .number(\.stanzaBytesMax), "largest stanza after login, bytes"),
    Entry("pending-per-stream", .number(\.pendingPerStreamMax), "messages a stream may have unacked"),
    Entry(
      "negotiated-window", .number(\.negotiatedWindowMax), "the most that an app server may ask for instead"),
    Entry("held-per-stream", .number(\.heldPerStreamMax), "messages beyond that which are still taken"),
    Entry("streams-per-sender", .number(\.streamsPerSenderMax), "app server streams of one sender id"),
    Entry(
      "write-backlog-bytes", .number(\.writeBacklogBytesMax),
      "unread output after which a connection is closed"),
    Entry("login-seconds", .seconds(\.loginDeadline), "from connecting to a bound stream"),
    Entry(
      "logins-under-way", .number(\.loginsUnderWayMax),
      "log-ins that go on at once on a listener and loop; further connections wait to be accepted"),
    Entry(
      "login-failures-per-minute", .number(\.loginFailuresPerAddressPerMinuteMax),
      "failed logins of an address before further ones wait"),
    Entry(
      "assertion-leeway-seconds", .number(\.assertionLeewaySeconds),
      "how far clocks of service accounts may run ahead"),
    Entry("keepalive-seconds", .seconds(\.keepaliveIdle), "silence after which a space is sent"),
    Entry("dead-seconds", .seconds(\.deadAfter), "silence after which a peer is given up"),
    Entry("http-head-bytes", .number(\.httpHeadBytesMax), "first line and headers of a request, bytes"),
    Entry("http-body-bytes", .number(\.httpBodyBytesMax), "body of a request, bytes"),
    Entry(
      "websocket-message-bytes", .number(\.webSocketMessageBytesMax), "largest WebSocket message, bytes"),
  ]

  private static let payload: [Entry] = [
    Entry(
      "payload-bytes", .number(\.payloadBytesMax), "largest payload, bytes of decoded keys and values"),
    Entry(
      "topic-payload-bytes", .number(\.topicPayloadBytesMax), "largest payload of a topic message, bytes"),
    Entry(
      "coerce-numbers", .flag(\.coerceNumericStrings), "1 takes numbers that were written as strings"),
  ]

  private static let storage: [Entry] = [
    Entry(
      "ttl-seconds", .number(\.timeToLiveSecondsMax), "longest time to live, and the one of messages without"),
    Entry(
      "stored-per-device", .number(\.storedPerDeviceMax), "non-collapsible messages stored for a device"),
    Entry(
      "collapse-keys-per-device", .number(\.collapseKeysPerDeviceMax), "collapse keys stored for a device"),
    Entry(
      "normal-delay-seconds", .seconds(\.normalPriorityDelay, least: 0),
      "how long normal priority may wait for company; 0 not at all"),
    Entry(
      "device-away-seconds", .number(\.deviceAwaySecondsMax),
      "absence after which a device is told of its messages only how many they were"),
    Entry(
      "token-idle-seconds", .number(\.tokenIdleSecondsMax),
      "absence after which a device's registrations end"),
    Entry(
      "upstream-pending-per-device", .number(\.upstreamPendingPerDeviceMax),
      "upstream messages a device may have unanswered"),
    Entry(
      "upstream-held-seconds", .number(\.upstreamHeldSecondsMax),
      "longest time an upstream message or receipt waits for an app server"),
    Entry(
      "upstream-retry-seconds", .seconds(\.upstreamRetryFirst, least: 0),
      "time without an app server's ack before the first repeat; 0 for none"),
    Entry(
      "upstream-retry-longest-seconds", .seconds(\.upstreamRetryLongest), "longest pause between repeats"),
  ]

  private static let targets: [Entry] = [
    Entry("batch-requests", .number(\.batchRequestsMax), "requests in one batch"),
    Entry("topic-batch-tokens", .number(\.topicBatchTokensMax), "tokens in one batchAdd or batchRemove"),
    Entry("registration-ids", .number(\.registrationIDsMax), "tokens in one registration_ids"),
    Entry("topics-per-token", .number(\.topicsPerTokenMax), "topics of a registration"),
    Entry(
      "condition-topics", .number(\.conditionTopicsMax), "topics named in a condition, at most 64", max: 64),
    Entry("group-members", .number(\.groupMembersMax), "members of a device group"),
  ]

  private static let rates: [Entry] = [
    Entry(
      "project-messages-per-minute", .rate(\.projectMessagesPerMinuteMax), "messages of a project; 0 is off"),
    Entry(
      "device-messages-per-minute", .rate(\.deviceMessagesPerMinuteMax), "messages to a device; 0 is off"),
    Entry("device-messages-per-hour", .rate(\.deviceMessagesPerHourMax), "messages to a device; 0 is off"),
    Entry(
      "collapsible-burst", .rate(\.collapsibleBurstMax),
      "collapsible messages to an app on a device at once; 0 is off"),
    Entry(
      "collapsible-refill-seconds", .seconds(\.collapsibleRefill), "after which the burst grows by one"),
    Entry(
      "topic-changes-per-second", .rate(\.topicChangesPerSecondMax),
      "topic subscriptions and removals of a project; 0 is off"),
    Entry(
      "fanouts-per-project", .rate(\.fanoutsPerProjectMax),
      "topic messages of a project under way at once; 0 is off"),
    Entry(
      "upstream-per-device-per-minute", .rate(\.upstreamPerDevicePerMinuteMax),
      "upstream messages of a device; 0 is off"),
    Entry(
      "upstream-per-project-per-minute", .rate(\.upstreamPerProjectPerMinuteMax),
      "upstream messages of a project; 0 is off"),
  ]
}

extension ServerConfiguration.LimitSet {
  package var limits: Limits {
    switch self {
    case .usual: Limits()
    case .published: .asPublished
    case .off: .withoutRates
    }
  }
}

extension Limits {
  /// A set with some of its limits replaced.
  package init(_ set: ServerConfiguration.LimitSet = .usual, settings: [String: Int]) throws(ServerFault) {
    self = set.limits
    for (name, value) in settings.sorted(by: { $0.key < $1.key }) {
      guard let entry = LimitSettings.all.first(where: { $0.name == name }) else {
        throw ServerFault(
          "There is no limit \"\(name)\". Known: \(LimitSettings.all.map(\.name).joined(separator: ", ")).")
      }
      guard value >= entry.least else {
        throw ServerFault("The limit \"\(name)\" must be \(entry.least) or more, not \(value).")
      }
      entry.apply(value, to: &self)
    }
  }
}
