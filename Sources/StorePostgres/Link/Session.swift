import CLinux
import CPQ
import Glibc

/// One connection to PostgreSQL in pipeline mode, used by one thread.
///
/// Statements that were sent before a ``sync()`` are one transaction. Results are read in the order of sending.
final class Session {
  /// What a session is set up as.
  struct Role: Sendable {
    /// Shown in `pg_stat_activity` behind the program's name.
    var name: String
    /// Run once, before anything else.
    var settings: [String] = []
    var statements: [SQL] = []
    /// How long one answer may take.
    var answerMax: Duration = .seconds(60)
    /// False: statements run one by one as they are given, see ``Session/execute(_:)``.
    var isPipelined = true
  }

  private let connection: OpaquePointer
  private let notices: Notices
  private let answerMaxMs: Int32
  /// Nothing more can be done with it.
  private(set) var isBroken = false
  /// How many ``sync()`` were sent whose answers have not come.
  private(set) var syncsAwaited = 0
  /// Devices whose rows the open transaction wrote and whose owners are to be told.
  var written: Set<Int64> = []
  /// Of these, the ones that had no open stream when the transaction looked: their own node is to be told as well.
  var writtenUnheld: Set<Int64> = []

  /// Connects, waiting as long as the address allows.
  init(_ address: PostgresAddress, _ role: Role) throws(PostgresFailure) {
    guard let connection = address.connect(as: role.name) else {
      throw .connection("connecting: no memory")
    }
    self.connection = connection
    answerMaxMs = Int32(clamping: role.answerMax.components.seconds * 1_000)
    notices = Notices()
    guard PQstatus(connection) == CONNECTION_OK else {
      throw .connection("connecting to \(address): \(Self.message(connection))")
    }
    PQsetNoticeReceiver(connection, noteNotice, Unmanaged.passUnretained(notices).toOpaque())
    // A table that has no index for a statement looks dear where plans must go by index, and each call of a function
    // that reads it was compiled for 50 ms, though it has a handful of rows.
    try execute("SET jit = off")
    for setting in role.settings { try execute(setting) }
    for statement in role.statements { try prepare(statement) }
    guard role.isPipelined else { return }
    guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else {
      throw .connection("entering pipeline mode: \(Self.message(connection))")
    }
  }

  deinit { PQfinish(connection) }

  /// For waiting on it together with something else.
  var descriptor: Int32 { PQsocket(connection) }

  private static func message(_ connection: OpaquePointer) -> String {
    guard let text = PQerrorMessage(connection) else { return "" }
    let lines = String(cString: text).split(separator: "\n").map { $0.drop { $0 == " " || $0 == "\t" } }
    return lines.joined(separator: "; ")
  }

  // MARK: Before the pipeline

  /// Runs text without parameters and waits; only before the pipeline begins.
  func execute(_ text: String) throws(PostgresFailure) {
    guard let result = PQexec(connection, text) else { throw broken("running a setting") }
    defer { PQclear(result) }
    let status = PQresultStatus(result)
    guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else { throw failure(result) }
  }

  /// Runs one statement and waits for its rows; only before the pipeline begins.
  func ask(_ text: String, _ parameters: Parameters = Parameters()) throws(PostgresFailure) -> Rows {
    let result = parameters.withPointers { count, values, lengths, formats in
      PQexecParams(connection, text, count, nil, values, lengths, formats, 1)
    }
    guard let result else { throw broken("asking") }
    let status = PQresultStatus(result)
    guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else {
      defer { PQclear(result) }
      throw failure(result)
    }
    return Rows(result)
  }

  private func prepare(_ statement: SQL) throws(PostgresFailure) {
    guard let result = PQprepare(connection, statement.rawValue, statement.text, 0, nil) else {
      throw broken("preparing a statement")
    }
    defer { PQclear(result) }
    guard PQresultStatus(result) == PGRES_COMMAND_OK else { throw failure(result) }
  }

  // MARK: Sending

  /// Queues a statement.
  func send(_ statement: SQL, _ parameters: Parameters = Parameters()) throws(PostgresFailure) {
    let sent = parameters.withPointers { count, values, lengths, formats in
      PQsendQueryPrepared(connection, statement.rawValue, count, values, lengths, formats, 1)
    }
    guard sent == 1 else { throw broken("sending") }
  }

  /// Queues the end of the transaction.
  func sync() throws(PostgresFailure) {
    notices.warning = nil
    guard PQpipelineSync(connection) == 1 else { throw broken("sending") }
    syncsAwaited += 1
    try flush()
  }

  /// Sends a statement, waits for its rows, and leaves the transaction open.
  func query(_ statement: SQL, _ parameters: Parameters = Parameters()) throws(PostgresFailure) -> Rows {
    try send(statement, parameters)
    guard PQsendFlushRequest(connection) == 1 else { throw broken("sending") }
    return try rows()
  }

  /// Sends a statement whose only parameter is a text, as ``query(_:_:)``.
  func query(_ statement: SQL, text: String) throws(PostgresFailure) -> Rows {
    var parameters = Parameters()
    parameters.text(text)
    return try query(statement, parameters)
  }

  /// Asks the server to answer what was queued, leaving the transaction open.
  func requestFlush() throws(PostgresFailure) {
    guard PQsendFlushRequest(connection) == 1 else { throw broken("sending") }
    try flush()
  }

  private func flush() throws(PostgresFailure) {
    guard PQflush(connection) >= 0 else { throw broken("sending") }
  }

  // MARK: Receiving

  /// Looks, without waiting, whether the server has ended a session that was idle.
  func lookForEnd() {
    var entry = pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, 0) > 0 else { return }
    if PQconsumeInput(connection) == 0 || PQstatus(connection) == CONNECTION_BAD { isBroken = true }
    // What the server says last comes before the end of the connection.
    if entry.revents & Int16(POLLHUP) != 0 { isBroken = true }
  }

  /// The rows of the next statement that was sent.
  func rows() throws(PostgresFailure) -> Rows {
    guard let result = try next() else { throw broken("reading: a result is missing") }
    switch PQresultStatus(result) {
    case PGRES_TUPLES_OK, PGRES_COMMAND_OK:
      // A null pointer stands behind each statement's results.
      if let more = try next() { PQclear(more) }
      return Rows(result)
    default:
      defer { PQclear(result) }
      throw failure(result)
    }
  }

  /// Waits for the end of the transaction.
  /// - Throws: A failure with `outcomeUnknown` when the commit may or may not have taken place.
  func synced() throws(PostgresFailure) {
    var failed: PostgresFailure?
    while syncsAwaited > 0 {
      guard let result = try next() else { continue }
      defer { PQclear(result) }
      switch PQresultStatus(result) {
      case PGRES_PIPELINE_SYNC:
        syncsAwaited -= 1
        if let failed { throw failed }
        if let warning = notices.warning {
          // The wait for the standby was cut short: the primary has it, a standby perhaps.
          throw PostgresFailure(kind: .server, state: "01000", detail: warning, outcomeUnknown: true)
        }
        return
      case PGRES_FATAL_ERROR: if failed == nil { failed = failure(result) }
      default: continue
      }
    }
  }

  /// Ends a transaction that failed, so that the next one can begin; what it did is undone.
  func abandon() {
    do throws(PostgresFailure) {
      if syncsAwaited == 0 { try sync() }
    } catch {
      // Broken, which the session says itself.
    }
    while syncsAwaited > 0, !isBroken {
      do throws(PostgresFailure) {
        try synced()
      } catch {
        // The failure is known already.
      }
    }
    written.removeAll(keepingCapacity: true)
    writtenUnheld.removeAll(keepingCapacity: true)
  }

  private func next() throws(PostgresFailure) -> OpaquePointer? {
    try flush()
    while PQisBusy(connection) != 0 { try wait() }
    let result = PQgetResult(connection)
    if result == nil, PQstatus(connection) == CONNECTION_BAD { throw broken("reading") }
    return result
  }

  private func wait() throws(PostgresFailure) {
    let unsent = PQflush(connection)
    guard unsent >= 0 else { throw broken("sending") }
    var entry = pollfd(
      fd: PQsocket(connection), events: Int16(POLLIN) | (unsent == 1 ? Int16(POLLOUT) : 0), revents: 0)
    let ready = poll(&entry, 1, answerMaxMs)
    if ready == 0 { throw broken("the server has not answered in \(answerMaxMs / 1_000) s") }
    if ready < 0, errno != EINTR { throw broken("waiting: errno \(errno)") }
    guard PQconsumeInput(connection) == 1 else { throw broken("reading") }
  }

  // MARK: Notifications

  /// Reads what has come without waiting, and hands each notification's payload out.
  func notifications(_ each: (String) -> Void) throws(PostgresFailure) {
    guard PQconsumeInput(connection) == 1 else { throw broken("reading") }
    while let note = PQnotifies(connection) {
      each(String(cString: note.pointee.extra))
      PQfreemem(note)
    }
  }

  // MARK: Failures

  private func broken(_ what: String) -> PostgresFailure {
    isBroken = true
    let text = Self.message(connection)
    return .connection(text.isEmpty ? what : "\(what): \(text)")
  }

  private func failure(_ result: OpaquePointer) -> PostgresFailure {
    func field(_ code: Int32) -> String {
      PQresultErrorField(result, code).map { String(cString: $0) } ?? ""
    }
    if PQresultStatus(result) == PGRES_PIPELINE_ABORTED {
      return PostgresFailure(kind: .server, state: "25P02", detail: "the transaction failed before")
    }
    let state = field(shim_diag_sqlstate())
    if state.isEmpty { return broken("reading") }
    let found = PostgresFailure(kind: .server, state: state, detail: field(shim_diag_primary()))
    if found.endsSession { isBroken = true }
    return found
  }
}

/// Warnings that the server sent by itself.
private final class Notices {
  var warning: String?
}

private func noteNotice(_ raw: UnsafeMutableRawPointer?, _ result: OpaquePointer?) {
  guard let raw, let result else { return }
  guard let severity = PQresultErrorField(result, shim_diag_severity()),
    String(cString: severity) == "WARNING"
  else { return }
  let text = PQresultErrorField(result, shim_diag_primary()).map { String(cString: $0) } ?? "a warning"
  Unmanaged<Notices>.fromOpaque(raw)._withUnsafeGuaranteedRef { $0.warning = text }
}
