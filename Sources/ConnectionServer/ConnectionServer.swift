import Connections
import EventLoops
import Glibc
import HTTPCore
import PushModel
import Seams
import Stores
import Synchronization
import TLSCore
import Telemetry

/// The upstream–downstream connection server: listeners, loops, shards and the store, in one process.
///
/// ```swift
/// var configuration = ServerConfiguration()
/// configuration.dataDirectory = "/var/lib/weir"
/// let server = try await ConnectionServer.start(configuration)
/// print(server.readyLine)
/// await server.stop()
/// ```
public final class ConnectionServer: Sendable {
  /// The ports that were bound, and the first project.
  public struct Addresses: Sendable {
    /// XMPP over TLS.
    public var xmpp: Int
    /// HTTPS.
    public var https: Int
    /// Administration.
    public var admin: Int
    /// Id of the first project.
    public var projectID: String
    /// Sender id of the first project.
    public var senderID: Int64
    /// Folder with the keys and certificates.
    public var credentials: String
  }

  /// Where the server listens.
  public let addresses: Addresses
  let context: ServerContext
  private let loops: [EventLoop]
  private let tls: TLSContexts
  private let keeping: Task<Void, Never>
  private let ending = Mutex<Task<Void, Never>?>(nil)

  private init(
    addresses: Addresses, context: ServerContext, loops: [EventLoop], tls: TLSContexts,
    keeping: Task<Void, Never>
  ) {
    self.addresses = addresses
    self.context = context
    self.loops = loops
    self.tls = tls
    self.keeping = keeping
  }

  /// Opens the store, makes what is missing in the data directory, and listens.
  ///
  /// - Throws: ``ServerFault`` saying what to do: the data directory is in use, a port is taken, a file cannot be
  ///   written.
  public static func start(_ configuration: ServerConfiguration) async throws -> ConnectionServer {
    try await start(configuration, time: SteadyTime(), tuning: ShardTuning())
  }

  static func start(
    _ configuration: ServerConfiguration, time: any TimeSource, tuning: ShardTuning
  ) async throws -> ConnectionServer {
    let log = try LogSetUp.make(configuration)
    let limits = try Limits(configuration.limitSet, settings: configuration.limits)
    let storeLimits = StoreLimits(
      storedPerDeviceMax: limits.storedPerDeviceMax,
      collapseKeysPerDeviceMax: limits.collapseKeysPerDeviceMax,
      topicsPerTokenMax: limits.topicsPerTokenMax, groupMembersMax: limits.groupMembersMax,
      storedPerConnectedDeviceMax: tuning.connectedBacklogMax)
    let store: OpenStore
    do {
      store = try OpenStore(configuration, storeLimits)
    } catch { throw ServerFault(error, configuration) }
    do {
      return try await open(configuration, store, limits, time, tuning, log)
    } catch {
      await store.close()
      throw ServerFault(error, configuration)
    }
  }

  private static func open(
    _ configuration: ServerConfiguration, _ opened: OpenStore, _ limits: Limits, _ time: any TimeSource,
    _ tuning: ShardTuning, _ log: Log
  ) async throws -> ConnectionServer {
    let store = opened.store
    // Expiry, and which of two messages is the newer one, are the same for all nodes.
    let ahead = opened.bus?.clockAhead ?? .zero
    let time = (time as? SteadyTime)?.restarted(ahead: ahead) ?? time
    let ready = try await StartUp.prepare(
      configuration, store: store, limits: limits, tuning: tuning, time: time, log: log,
      isShared: opened.bus != nil)
    let count = configuration.loops > 0 ? configuration.loops : max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let loops = (0..<count).map { EventLoop(name: "weir-\($0)", time: time) }
    let core = ServerCore(
      configuration, ready, limits, tuning, time: time, log: log, loops: loops, bus: opened.bus)
    let context = core.context
    let tls = try TLSContexts(configuration, ready.credentials)
    for loop in loops { try loop.start() }
    do {
      try await core.begin()
      let listeners = Listeners(context: context, tls: tls, workers: context.workers)
      let ending = Ending()
      let admin = AdminAPI(context: context) { ending.ask() }
      let ports = try await listeners.open(admin: admin)
      core.resume(ready)
      let project = try Self.finishCredentials(ready, ports)
      let addresses = Addresses(
        xmpp: ports.xmpp, https: ports.https, admin: ports.admin, projectID: project.id,
        senderID: project.sender.value, credentials: ready.credentials.directory)
      let server = ConnectionServer(
        addresses: addresses, context: context, loops: loops, tls: tls,
        keeping: Task { await core.keepHouse() })
      ending.action = { [weak server] in Task { await server?.stop() } }
      log.info(
        "The server is ready",
        ["xmpp": .init(ports.xmpp), "https": .init(ports.https), "admin": .init(ports.admin)])
      return server
    } catch {
      for loop in loops { loop.stop() }
      throw error
    }
  }

  private static func finishCredentials(_ ready: StartUp, _ ports: Listeners.Ports) throws -> Project {
    let file = try ready.credentials.makeServiceAccount(ready.project, httpsPort: ports.https)
    try ready.accounts.serviceAccounts.add(file: file, sender: ready.project.sender)
    return ready.project
  }

  /// The line that tells callers where to connect.
  public var readyLine: String {
    """
    weir ready {"xmpp":\(addresses.xmpp),"https":\(addresses.https),"admin":\(addresses.admin),\
    "project_id":"\(addresses.projectID)","sender_id":"\(addresses.senderID)",\
    "credentials":"\(addresses.credentials)"}
    """
  }

  /// Reads the certificate files again; open connections keep theirs.
  public func reloadCertificates() throws { try tls.reload() }

  /// Drains and ends: announces, answers what is pending, closes the streams, and the store last.
  ///
  /// Returns when all is closed. Further calls wait for the same end.
  public func stop() async {
    let task = ending.withLock { task -> Task<Void, Never> in
      if let task { return task }
      let new = Task { await Drain(context: context, loops: loops).run() }
      task = new
      return new
    }
    keeping.cancel()
    await task.value
  }

  /// Waits until the server has ended, by ``stop()`` or through the admin surface.
  public func waitUntilStopped() async {
    await context.ended.wait()
  }
}
