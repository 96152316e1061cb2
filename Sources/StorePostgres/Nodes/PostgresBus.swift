import CLinux
import Glibc
package import PushModel
import Seams
package import Stores

/// LISTEN and NOTIFY over a connection of its own, and the node's heartbeat.
///
/// NOTIFY within a transaction that writes would make commits wait for each other, so it comes after, and without
/// waiting for the disk.
package final class PostgresBus: NodeBus {
  private struct State {
    var handler: (@Sendable ([BusEvent]) -> Void)?
    /// Nobody listened yet when there was something to say.
    var hasMissed = false
    /// Channel and payload.
    var outgoing: [(channel: String, payload: String)] = []
    /// Senders whose upstream messages the store could not be told to hand over yet.
    var handOvers: Set<SenderID> = []
    /// What did not fit: everybody is to look at everything.
    var overflowed = false
    var closed = false
    var atEnd: (@Sendable () -> Void)?
  }

  /// Notifications that may wait while the server is away; beyond them one says it all.
  private static let outgoingMax = 10_000
  /// PostgreSQL takes payloads of less than 8,000 bytes.
  private static let payloadMax = 7_900

  package let node: Int
  /// How far the database's clock was ahead of this machine's when the node joined.
  package var clockAhead: Duration { membership.clockAhead }
  let membership: Membership
  private let address: PostgresAddress
  private let lease: Duration
  private let state: Guarded<State>
  /// Readable when there is something to send.
  private let alarm: Int32
  /// What the bus needs of the store.
  struct Store: Sendable {
    var nodes: @Sendable (@escaping Completion<[NodeSummary]>) -> Void
    var handOver: @Sendable (SenderID, @escaping Completion<Void>) -> Void
    /// Takes how many nodes live.
    var living: @Sendable (Int) -> Void
  }
  private let store: Store

  init(
    _ address: PostgresAddress, _ membership: Membership, lease: Duration,
    store: Store
  ) throws(StoreFault) {
    self.address = address
    self.membership = membership
    self.lease = lease
    self.store = store
    node = membership.number
    state = Guarded(State())
    alarm = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
    guard alarm >= 0, startThread(name: "store-bus", { [self] in run() }) else {
      throw .unavailable(outcomeUnknown: false, detail: "starting the bus: errno \(errno)")
    }
  }

  deinit { Glibc.close(alarm) }

  package func listen(_ handler: @escaping @Sendable ([BusEvent]) -> Void) {
    let hasMissed = state.withLock { state in
      state.handler = handler
      defer { state.hasMissed = false }
      return state.hasMissed
    }
    if hasMissed { handler([.gap]) }
  }

  package func nodes(_ done: @escaping Completion<[NodeSummary]>) { store.nodes(done) }

  package func handOver(upstreamOf sender: SenderID) {
    store.handOver(sender) { [weak self] result in
      switch result {
      // Told after it is durable, or nobody would find anything.
      case .success: self?.send(.upstream([sender]), to: nil)
      case .failure: self?.state.withLock { _ = $0.handOvers.insert(sender) }
      }
    }
  }

  package func send(_ event: BusEvent, to node: Int?) {
    if node == self.node { return }
    let payloads = Self.payloads(event, from: self.node)
    let channel = membership.channel(of: node)
    state.withLock { state in
      if state.outgoing.count + payloads.count > Self.outgoingMax {
        state.outgoing = []
        state.overflowed = true
      } else {
        state.outgoing += payloads.map { (channel, $0) }
      }
    }
    ring()
  }

  private func ring() {
    var one: UInt64 = 1
    // A counter that is full rings already.
    _ = Glibc.write(alarm, &one, 8)
  }

  /// Lets what is queued go out if it can, then ends.
  func close(_ atEnd: @escaping @Sendable () -> Void) {
    state.withLock { state in
      guard !state.closed else { return }
      state.closed = true
      state.atEnd = atEnd
    }
    ring()
  }

  // MARK: Payloads

  /// `from kind values…`, each below ``payloadMax``.
  static func payloads(_ event: BusEvent, from node: Int) -> [String] {
    switch event {
    case .wake(let devices): lists("\(node) w", devices.map { String($0.value) })
    case .kick(let device, let epoch): ["\(node) k \(device.value) \(epoch)"]
    case .upstream(let senders): lists("\(node) u", senders.map { String($0.value) })
    case .tokens: ["\(node) t"]
    case .accounts: ["\(node) a"]
    case .gap: ["\(node) g"]
    }
  }

  private static func lists(_ head: String, _ values: [String]) -> [String] {
    var payloads: [String] = []
    var current = head
    for value in values {
      if current.utf8.count + value.utf8.count + 1 > payloadMax {
        payloads.append(current)
        current = head
      }
      current += " " + value
    }
    return payloads + [current]
  }

  /// Nil for what another version may say, and for what this node said itself.
  static func event(_ payload: String, at node: Int) -> BusEvent? {
    let words = payload.split(separator: " ")
    guard words.count >= 2, let from = Int(words[0]), from != node else { return nil }
    let values = words.dropFirst(2).compactMap { Int64($0) }
    guard values.count == words.count - 2 else { return nil }
    switch (words[1], values.count) {
    case ("w", 1...): return .wake(values.map { DeviceNumber($0) })
    case ("k", 2): return .kick(DeviceNumber(values[0]), epoch: values[1])
    case ("u", 1...): return .upstream(values.map { SenderID($0) })
    case ("t", 0): return .tokens
    case ("a", 0): return .accounts
    case ("g", 0): return .gap
    default: return nil
    }
  }

  // MARK: On the thread

  private func run() {
    var session: Session?
    var beatAt = SystemTime().moment
    var living: Set<Int64> = []
    while true {
      let closed = state.withLock { $0.closed }
      do throws(PostgresFailure) {
        let open: Session
        if let session, !session.isBroken {
          open = session
        } else {
          if closed { break }
          session = nil
          open = try Session(address, role)
          session = open
          // What was sent while nobody listened is lost, before the first time too.
          tell([.gap])
          beatAt = SystemTime().moment
        }
        if SystemTime().moment >= beatAt {
          try beat(open, &living)
          beatAt = SystemTime().moment + lease / 4
        }
        try sendOutgoing(open)
        if closed { break }
        try receive(open, until: beatAt)
      } catch {
        if closed { break }
        session = nil
        pauseAfterFailure()
      }
    }
    session = nil
    state.withLock { $0.atEnd }?()
  }

  private var role: Session.Role {
    Session.Role(
      name: "bus",
      settings: [
        "SET synchronous_commit = off", "LISTEN \(membership.channel(of: nil))",
        "LISTEN \(membership.channel(of: node))",
      ], statements: [.beat, .livingNodes, .notify], answerMax: .seconds(20))
  }

  private func pauseAfterFailure() {
    var entry = pollfd(fd: -1, events: 0, revents: 0)
    _ = poll(&entry, 1, 250)
  }

  /// Says something to this node.
  func tell(_ events: [BusEvent]) {
    guard !events.isEmpty else { return }
    let handler = state.withLock { state in
      if state.handler == nil { state.hasMissed = true }
      return state.handler
    }
    handler?(events)
  }

  /// Renews the lease, and looks whether another node is gone.
  private func beat(_ session: Session, _ living: inout Set<Int64>) throws(PostgresFailure) {
    var parameters = Parameters()
    parameters.int(membership.incarnation)
    parameters.int(Int64(lease.milliseconds))
    try session.send(.beat, parameters)
    try session.send(.livingNodes)
    try session.sync()
    _ = try session.rows()
    let rows = try session.rows()
    let found = Set((0..<rows.count).map { rows.int($0, 0) })
    try session.synced()
    // What a node had taken and told nobody of when it ended is found by looking.
    if !living.isSubset(of: found) { tell([.gap]) }
    living = found
    store.living(found.count)
    let left = state.withLock { state in
      defer { state.handOvers = [] }
      return state.handOvers
    }
    for sender in left.sorted() { handOver(upstreamOf: sender) }
  }

  private func sendOutgoing(_ session: Session) throws(PostgresFailure) {
    let outgoing = state.withLock { state in
      var outgoing = state.outgoing
      if state.overflowed { outgoing = [(membership.channel(of: nil), "\(node) g")] }
      state.outgoing = []
      state.overflowed = false
      return outgoing
    }
    guard !outgoing.isEmpty else { return }
    do throws(PostgresFailure) {
      for note in outgoing {
        var parameters = Parameters()
        parameters.text(note.channel)
        parameters.text(note.payload)
        try session.send(.notify, parameters)
      }
      try session.sync()
      for _ in outgoing { _ = try session.rows() }
      try session.synced()
    } catch {
      // They may have gone out or not: whoever is there looks at everything.
      state.withLock { $0.overflowed = true }
      if !session.isBroken { session.abandon() }
      throw error
    }
  }

  private func receive(_ session: Session, until moment: Moment) throws(PostgresFailure) {
    // What came with an answer to something this node said lies with the library: the socket does not tell of it again.
    if try takeNotifications(session) { return }
    var entries = [
      pollfd(fd: session.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: alarm, events: Int16(POLLIN), revents: 0),
    ]
    let wait = max(0, (moment - SystemTime().moment).milliseconds)
    _ = poll(&entries, nfds_t(entries.count), Int32(clamping: wait + 1))
    if entries[1].revents != 0 {
      var count: UInt64 = 0
      _ = Glibc.read(alarm, &count, 8)
    }
    if entries[0].revents != 0 { _ = try takeNotifications(session) }
  }

  /// - Returns: Whether there were any.
  private func takeNotifications(_ session: Session) throws(PostgresFailure) -> Bool {
    var events: [BusEvent] = []
    var hasSome = false
    try session.notifications { payload in
      hasSome = true
      if let event = Self.event(payload, at: node) { events.append(event) }
    }
    tell(events)
    return hasSome
  }
}
