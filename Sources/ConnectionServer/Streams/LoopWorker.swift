import EventLoops
import PushModel
import Telemetry

/// A loop with its shard and connections.
///
/// `@unchecked Sendable`: `loop`, `context` and `index` are constants of Sendable types; everything else is made
/// and touched on the loop's thread alone.
final class LoopWorker: @unchecked Sendable {
  let loop: any Loop
  let context: ServerContext
  let index: Int
  let shard: Shard
  var connections: [UInt32: XMPPConnection] = [:]
  /// Those of the HTTPS listener, for a drain.
  var httpConnections: [ObjectIdentifier: HTTPConnection] = [:]
  /// Connections of `/echo`, for a drain.
  var echoes: [ObjectIdentifier: EchoConnection] = [:]
  /// Pages of the console that watch.
  private(set) lazy var console = ConsoleHub(worker: self)
  var listeners: [TCPListener] = []
  private(set) lazy var xmppGate = makeGate("xmpp")
  private(set) lazy var httpsGate = makeGate("https")
  var sendTargets = SendTargets()
  private var driver: ShardDriver?
  /// Sends over HTTP.
  private(set) lazy var httpMeter = HTTPMeter(context.metrics)
  private(set) lazy var sendDoor = SendDoor(context: context, shard: shard)

  init(loop: any Loop, context: ServerContext, shard: Shard) {
    self.loop = loop
    self.context = context
    self.shard = shard
    index = shard.index
  }

  private func makeGate(_ listener: String) -> LoginGate {
    LoginGate(
      on: loop, max: context.limits.loginsUnderWayMax, patience: context.limits.loginDeadline / 4,
      waits: context.metrics.counter(.acceptsPutOff, listener))
  }

  /// Connects the shard with its mailbox.
  ///
  /// On the loop's thread.
  func begin(_ mailbox: Mailbox<ShardMessage>) {
    shard.worker = self
    driver = ShardDriver(loop: loop, shard: shard, mailbox: mailbox)
  }
}
