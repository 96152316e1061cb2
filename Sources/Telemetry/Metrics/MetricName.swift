/// Every metric of Weir, once: name, kind, labels, help.
///
/// Nothing else makes a name.
///
/// Names follow Prometheus' rules: base units, `_total` on counters, `weir_` in front of all.
package enum MetricName: String, Sendable, CaseIterable {
  // Messages
  case messages = "messages_total"
  case nacks = "nacks_total"
  case duplicates = "message_duplicates_total"
  case upstreamRepeats = "upstream_repeats_total"
  case receipts = "receipts_total"
  case fanouts = "fanouts_total"
  case unknownDeviceAcks = "unknown_device_acks_total"
  case pendingMessages = "pending_messages"
  case acceptSeconds = "message_accept_seconds"
  case deliverySeconds = "message_delivery_seconds"

  // Connections and streams
  case connections
  case connectionsOpened = "connections_opened_total"
  case connectionsClosed = "connections_closed_total"
  case acceptsPutOff = "accepts_put_off_total"
  case streams
  case logins = "logins_total"
  case handshakeSeconds = "tls_handshake_seconds"
  case bytesReceived = "bytes_received_total"
  case bytesSent = "bytes_sent_total"
  case stanzasReceived = "stanzas_received_total"
  case stanzasSent = "stanzas_sent_total"
  case draining

  // HTTP
  case httpRequests = "http_requests_total"
  case httpSeconds = "http_request_seconds"

  // Loops
  case loopRoundSeconds = "loop_round_seconds"
  case loopLongestRoundSeconds = "loop_longest_round_seconds"
  case loopStalls = "loop_stalls_total"
  case loopTimers = "loop_timers"
  case mailboxDepth = "loop_mailbox_depth"

  // Store
  case storeQueueDepth = "store_queue_depth"
  case storeBatchRows = "store_batch_rows"
  case storeCommitSeconds = "store_commit_seconds"
  case storeWritesElided = "store_writes_elided_total"
  case storeFaults = "store_faults_total"
  case storedMessages = "stored_messages"
  case registrations

  // Process
  case logLinesLost = "log_lines_lost_total"
  case residentBytes = "process_resident_memory_bytes"
  case processorTime = "process_cpu_seconds"
  case openFiles = "process_open_files"
  case startTime = "process_start_time_seconds"
  case buildInfo = "build_info"

  package enum Kind: String, Sendable { case counter, gauge, histogram }

  /// What one step of a recorded value is, and so how it is shown.
  package enum Unit: Sendable {
    /// Shown as it is.
    case one
    /// Recorded in nanoseconds, shown in seconds.
    case nanoseconds
  }

  /// What the exposition says.
  package var fullName: String { "weir_" + rawValue }

  package var kind: Kind {
    switch self {
    case .messages, .nacks, .duplicates, .upstreamRepeats, .receipts, .fanouts, .unknownDeviceAcks,
      .connectionsOpened,
      .connectionsClosed, .acceptsPutOff, .logins,
      .bytesReceived, .bytesSent, .stanzasReceived, .stanzasSent, .httpRequests, .storeWritesElided,
      .storeFaults, .loopStalls, .logLinesLost:
      .counter
    case .pendingMessages, .connections, .streams, .draining, .mailboxDepth, .storeQueueDepth,
      .storedMessages, .registrations, .residentBytes, .loopLongestRoundSeconds, .loopTimers, .startTime,
      .buildInfo, .processorTime, .openFiles:
      .gauge
    case .acceptSeconds, .deliverySeconds, .handshakeSeconds, .httpSeconds, .loopRoundSeconds,
      .storeBatchRows, .storeCommitSeconds:
      .histogram
    }
  }

  package var unit: Unit {
    switch self {
    case .acceptSeconds, .deliverySeconds, .handshakeSeconds, .httpSeconds, .loopRoundSeconds,
      .storeCommitSeconds, .processorTime:
      .nanoseconds
    default: .one
    }
  }

  /// Label names, in the order in which their values are given at registration.
  ///
  /// Each has few values; ids and tokens are never labels.
  package var labels: [String] {
    switch self {
    case .messages: ["direction", "state"]
    case .nacks: ["direction", "code"]
    case .duplicates, .pendingMessages: ["direction"]
    case .fanouts: ["step"]
    case .connections, .connectionsOpened, .acceptsPutOff, .bytesReceived, .bytesSent: ["listener"]
    case .connectionsClosed: ["listener", "reason"]
    case .streams: ["kind"]
    case .logins: ["kind", "outcome"]
    case .stanzasReceived, .stanzasSent: ["kind"]
    case .httpRequests: ["route", "status"]
    case .httpSeconds: ["route"]
    case .loopRoundSeconds, .loopLongestRoundSeconds, .loopStalls, .loopTimers, .mailboxDepth: ["loop"]
    case .storeQueueDepth: ["shard"]
    case .storeFaults: ["fault"]
    case .buildInfo: ["version"]
    case .receipts, .upstreamRepeats, .unknownDeviceAcks, .acceptSeconds, .deliverySeconds, .handshakeSeconds,
      .draining,
      .storeBatchRows,
      .storeCommitSeconds, .storeWritesElided, .storedMessages, .registrations, .logLinesLost,
      .residentBytes, .processorTime, .openFiles, .startTime:
      []
    }
  }

  package var help: String {
    switch self {
    case .messages: "Messages that came to a state of their life."
    case .nacks: "Messages refused, by the code the sender was told."
    case .duplicates: "Repeats of a message id that were acked again and not delivered again."
    case .fanouts: "Messages to topics and conditions: accepted, and done when all receivers were visited."
    case .upstreamRepeats:
      "Upstream messages and receipts written again to a stream that had not acked them."
    case .receipts: "Delivery receipts handed to app servers."
    case .unknownDeviceAcks: "Acks of devices that named no message in flight to them."
    case .pendingMessages: "Messages written to a stream and not yet acked."
    case .acceptSeconds: "From a message's arrival to its ack or nack."
    case .deliverySeconds: "From handing a message to its device's stream to the device's ack."
    case .connections: "Open connections."
    case .connectionsOpened: "Connections accepted."
    case .connectionsClosed: "Connections closed, by reason."
    case .acceptsPutOff: "Times that connections had to wait since too many log-ins were under way."
    case .streams: "Logged-in streams: app servers and devices."
    case .logins: "Login attempts by outcome."
    case .handshakeSeconds: "Duration of TLS handshakes."
    case .bytesReceived: "Bytes read from sockets."
    case .bytesSent: "Bytes written to sockets."
    case .stanzasReceived: "Stanzas read."
    case .stanzasSent: "Stanzas written."
    case .draining: "1 while the server drains."
    case .httpRequests: "HTTP requests answered, by route and status."
    case .httpSeconds: "From an HTTP request's last byte to its answer."
    case .loopRoundSeconds: "Busy time of one round of an event loop."
    case .loopLongestRoundSeconds: "Longest round of an event loop since the start."
    case .loopStalls: "Rounds of an event loop that took over 100 ms."
    case .loopTimers: "Timers of an event loop that wait."
    case .mailboxDepth: "Commands waiting in a loop's mailbox."
    case .storeQueueDepth: "Writes waiting for the store."
    case .storeBatchRows: "Rows in one store transaction."
    case .storeCommitSeconds: "From handing the store a batch to its being durable."
    case .storeWritesElided: "Messages acked by their device before they were written."
    case .storeFaults: "Store calls that failed, by fault."
    case .storedMessages: "Messages waiting in the store."
    case .registrations: "Active registrations."
    case .logLinesLost: "Log lines that the output did not take."
    case .residentBytes: "Resident memory."
    case .processorTime: "Processor time used, of the user and the system."
    case .openFiles: "Open files, sockets among them."
    case .startTime: "Start of the process, in seconds since 1970-01-01 UTC."
    case .buildInfo: "Always 1; the label tells the version."
    }
  }
}
