import PushModel
import Seams
package import Stores

/// Which of several databases one is.
package struct StorePlace: Sendable, Hashable {
  /// From 0.
  package var index: Int
  package var count: Int
  package init(index: Int, count: Int) {
    self.index = index
    self.count = count
  }
  /// As it is kept and shown: counted from 1.
  var text: String { "\(index + 1)/\(count)" }
}

/// A ``Store`` in a PostgreSQL that any number of nodes share.
///
/// Each kind of work has a lane: a thread with a connection of its own, so that a scan, a fan-out or a registration never
/// stands before a message. What was submitted to a lane while its last transaction was under way makes up the next one.
/// Answers come on these threads, so a completion must be short. What an answer says has been committed, which is as
/// durable as the database's `synchronous_commit` and `synchronous_standby_names` make it.
package final class PostgresStore: Store {
  package struct Options: Sendable {
    package var limits: StoreLimits
    /// Names this node among all that share the database; the same after a restart.
    package var nodeName: String
    /// How long the node counts as alive without a word.
    package var nodeLease: Duration = .seconds(5)
    /// Which of how many databases it is, over which devices are spread.
    package var place: StorePlace
    /// Numbers of devices and registrations hold the device's slot; false counts from 1, for comparison with other stores.
    package var numbersHoldSlots = true

    package init(
      limits: StoreLimits = StoreLimits(), nodeName: String, place: StorePlace = .init(index: 0, count: 1)
    ) {
      self.limits = limits
      self.nodeName = nodeName
      self.place = place
    }
  }

  let limits: StoreLimits
  let room: StoredRoom
  let numbersHoldSlots: Bool
  let membership: Membership
  /// The other nodes.
  package let bus: PostgresBus
  /// Batches of messages; one after the other, whatever their caller.
  let writes: Lane
  /// Short statements that change little: claims, releases, leases, badges.
  let claims: Lane
  /// What asks step by step: registrations, topics, groups, accounts.
  let edits: Lane
  /// What somebody waits for: backlogs, look-ups, log-ins.
  let reads: Lane
  /// What may take long: inspection, pages, sweeping.
  let scans: Lane
  /// Slices of fan-outs.
  let fans: Lane
  private let atEnd: @Sendable () -> Void
  /// Where the next sweep goes on: blocks of the two tables.
  let sweepPlace = Guarded<(Int64, Int64)>((0, 0))
  /// Where the next sweep of idle devices goes on: the last one it looked at.
  let idlePlace = Guarded<Int64>(0)
  /// Devices that one sweep looks at.
  static let idleSlice: Int64 = 4_096
  /// Blocks of 8 KiB that one sweep looks at in each table.
  static let sweepBlocks: Int64 = 512

  /// Opens the database, brings its tables to the newest version, and joins its nodes; waits for all of it.
  ///
  /// ``close(_:)`` must be called: until then its threads keep the connections.
  /// - Parameter atEnd: Called when the last connection is closed.
  /// - Throws: ``StoreFault/schemaTooNew(found:known:)``, ``StoreFault/refused(detail:)`` or
  ///   ``StoreFault/unavailable(outcomeUnknown:detail:)``.
  package init(
    _ address: PostgresAddress, options: Options, atEnd: @escaping @Sendable () -> Void = {}
  ) throws(StoreFault) {
    limits = options.limits
    let room = StoredRoom(cap: options.limits.storedPerDeviceMax)
    self.room = room
    numbersHoldSlots = options.numbersHoldSlots
    self.atEnd = atEnd
    let membership = try Opening.open(
      address, name: options.nodeName, lease: options.nodeLease, place: options.place)
    self.membership = membership
    func lane(
      _ name: String, _ statements: [SQL], writes: Bool = true, stepwise: Bool = false, groupMax: Int = 256,
      settings: [String] = Self.byIndex
    ) -> Lane.Options {
      var options = Lane.Options(
        role: Session.Role(name: name, settings: settings, statements: statements))
      options.writes = writes
      options.isStepwise = stepwise
      options.groupMax = groupMax
      return options
    }
    var opened: [Lane] = []
    do throws(StoreFault) {
      let scans = try Lane(
        address, lane("store-scan", SQL.ofScans, stepwise: true, groupMax: 1, settings: []))
      opened.append(scans)
      let claims = try Lane(
        address, lane("store-claim", SQL.ofClaims, settings: Self.byIndex + Self.plannedOnce))
      opened.append(claims)
      let bus = try PostgresBus(
        address, membership, lease: options.nodeLease,
        store: .init(
          nodes: { Self.nodes(scans, membership, $0) },
          handOver: { Self.handOver($0, on: claims, membership, $1) },
          living: { room.share(among: $0) }))
      self.scans = scans
      self.claims = claims
      self.bus = bus
      let tell = Self.tellingOwners(bus)
      writes = try Lane(
        address, lane("store-write", SQL.ofWrites, settings: Self.byIndex + Self.plannedOnce),
        afterCommit: tell)
      opened.append(writes)
      edits = try Lane(address, lane("store-edit", SQL.ofEdits, stepwise: true, groupMax: 64))
      opened.append(edits)
      reads = try Lane(
        address,
        lane(
          "store-read", SQL.ofReads, writes: false, settings: Self.byIndex + Self.plannedOnce + Self.rowByRow)
      )
      opened.append(reads)
      fans = try Lane(
        address, lane("store-fan", SQL.ofFans, stepwise: true, groupMax: 1),
        afterCommit: Self.tellingOwners(bus, here: true))
    } catch {
      for lane in opened { lane.close {} }
      throw error
    }
  }

  /// A plan made while a table was small must not read all of it once it has grown.
  private static let byIndex = ["SET enable_seqscan = off"]
  /// For small batches making a plan costs more than what is planned.
  private static let plannedOnce = ["SET plan_cache_mode = force_generic_plan"]
  /// Each row by the indexes.
  private static let rowByRow = ["SET enable_hashjoin = off", "SET enable_mergejoin = off"]

  /// Wakes the nodes that hold the devices a committed transaction wrote for.
  ///
  /// The owner is read after the commit: read within it, a device that connects meanwhile elsewhere would be told by
  /// nobody, neither by its own read of the backlog nor by this.
  ///
  /// - Parameter here: Also this node, of devices that logged in while the transaction was under way: claims have a lane
  ///   of their own.
  static func tellingOwners(_ bus: PostgresBus, here: Bool = false) -> Lane.AfterCommit {
    Lane.AfterCommit(
      send: { session, devices throws(PostgresFailure) in
        var parameters = Parameters()
        parameters.ints(devices.sorted()) { $0 }
        // Nobody has the number 0.
        parameters.int4(here ? 0 : bus.node)
        try session.send(.owners, parameters)
      },
      take: { session throws(PostgresFailure) in
        let rows = try session.rows()
        var owned: [Int: [DeviceNumber]] = [:]
        for row in 0..<rows.count {
          owned[Int(rows.int(row, 1)), default: []].append(DeviceNumber(rows.int(row, 0)))
        }
        let new = owned.removeValue(forKey: bus.node)?.filter { session.writtenUnheld.contains($0.value) }
        session.writtenUnheld.removeAll(keepingCapacity: true)
        if let new, !new.isEmpty { bus.tell([.wake(new)]) }
        for (node, devices) in owned { bus.send(.wake(devices), to: node) }
      },
      missed: {
        bus.send(.gap, to: nil)
        bus.tell([.gap])
      })
  }

  private static func nodes(
    _ lane: Lane, _ membership: Membership, _ done: @escaping Completion<[NodeSummary]>
  ) {
    submit(to: lane, done, send: { session throws(PostgresFailure) in try session.send(.nodes) }) {
      session throws(PostgresFailure) in
      let rows = try session.rows()
      return .success(
        (0..<rows.count).map { row in
          NodeSummary(
            number: Int(rows.int(row, 0)), name: rows.text(row, 1), started: WallTime(ms: rows.int(row, 3)),
            isAlive: rows.bool(row, 4), isSelf: rows.int(row, 2) == membership.incarnation,
            devices: Int(rows.int(row, 5)))
        })
    }
  }

  private static func handOver(
    _ sender: SenderID, on lane: Lane, _ membership: Membership, _ done: @escaping Completion<Void>
  ) {
    submit(
      to: lane, done,
      send: { session throws(PostgresFailure) in
        var parameters = Parameters()
        parameters.int(sender.value)
        parameters.int(membership.incarnation)
        try session.send(.handOver, parameters)
      },
      take: { session throws(PostgresFailure) in
        _ = try session.rows()
        return .success(())
      })
  }

  private enum Life: Sendable {
    case open
    /// Who waits for the end.
    case closing([@Sendable () -> Void])
    case closed
  }
  private let life = Guarded(Life.open)

  package func close(_ done: @escaping @Sendable () -> Void) {
    let (isFirst, isOver) = life.withLock { life in
      switch life {
      case .open:
        life = .closing([done])
        return (true, false)
      case .closing(let waiting):
        life = .closing(waiting + [done])
        return (false, false)
      case .closed:
        return (false, true)
      }
    }
    if isOver { done() }
    guard isFirst else { return }
    let lanes = [writes, claims, edits, reads, scans, fans]
    let left = Guarded(lanes.count + 1)
    let ended: @Sendable () -> Void = { [self] in
      let isLast = left.withLock { left in
        left -= 1
        return left == 0
      }
      if isLast { closed() }
    }
    bus.close(ended)
    for lane in lanes { lane.close(ended) }
  }

  private func closed() {
    atEnd()
    let waiting = life.withLock { life -> [@Sendable () -> Void] in
      guard case .closing(let waiting) = life else { return [] }
      life = .closed
      return waiting
    }
    for done in waiting { done() }
  }

  // MARK: Handing work to lanes

  private static func submit<Value: Sendable>(
    to lane: Lane, _ done: @escaping Completion<Value>,
    send: @escaping @Sendable (Session) throws(PostgresFailure) -> Void,
    take: @escaping @Sendable (Session) throws(PostgresFailure) -> Result<Value, StoreFault>
  ) {
    lane.submit(
      LaneJob(
        send: send,
        take: { session throws(PostgresFailure) in
          let result = try take(session)
          return { done(result) }
        },
        fail: { done(.failure($0)) }))
  }

  /// Work that queues its statements and then reads their rows.
  func pipelined<Value: Sendable>(
    _ lane: Lane, _ done: @escaping Completion<Value>,
    send: @escaping @Sendable (Session) throws(PostgresFailure) -> Void,
    take: @escaping @Sendable (Session) throws(PostgresFailure) -> Value
  ) {
    Self.submit(to: lane, done, send: send) { session throws(PostgresFailure) in .success(try take(session)) }
  }

  /// One statement.
  func query<Value: Sendable>(
    _ lane: Lane, _ statement: SQL, _ parameters: Parameters, _ done: @escaping Completion<Value>,
    _ read: @escaping @Sendable (Rows) throws(PostgresFailure) -> Value
  ) {
    pipelined(
      lane, done, send: { session throws(PostgresFailure) in try session.send(statement, parameters) },
      take: { session throws(PostgresFailure) in try read(try session.rows()) })
  }

  /// Work that asks step by step.
  func stepwise<Value: Sendable>(
    _ lane: Lane, _ done: @escaping Completion<Value>,
    _ work: @escaping @Sendable (Session) throws(PostgresFailure) -> Result<Value, StoreFault>
  ) {
    Self.submit(to: lane, done, send: { _ throws(PostgresFailure) in }, take: work)
  }
}
