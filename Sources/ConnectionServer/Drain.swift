import EventLoops
import Seams
import Stores
import Telemetry
import WebSocketCore

/// The end of a server, in order: announce, answer, close streams, close the store, stop the loops.
struct Drain: Sendable {
  let context: ServerContext
  let loops: [any Loop]
  /// Streams are kept open this long at least, so that what was sent before its sender read the announcement is
  /// answered and not cut off.
  static let grace: Duration = .milliseconds(500)
  private let pause: Duration = .milliseconds(20)

  func run() async {
    context.log.info("Draining")
    context.startDraining()
    context.onEveryShard { shard in
      for listener in shard.worker?.listeners ?? [] { listener.close() }
      shard.worker?.listeners = []
      for connection in shard.worker.map({ Array($0.httpConnections.values) }) ?? [] { connection.drain() }
      shard.fanouts.pause()
      for stream in shard.senderStreams.values { stream.announceDraining() }
    }
    let start = context.time.moment
    let deadline = start + context.configuration.drainDeadline
    while context.time.moment < deadline {
      let busy = await context.gather { shard in
        shard.senderStreams.values.contains { $0.pendingCount > 0 } || !shard.writing.isIdle
          || shard.fanouts.isBusy
          || shard.worker?.httpConnections.values.contains { $0.isBusy } == true
      }
      if !busy.contains(true), context.time.moment - start >= Self.grace { break }
      try? await context.time.sleep(for: pause)
    }
    _ = await context.gather { shard in
      for connection in shard.worker.map({ Array($0.connections.values) }) ?? [] { connection.close() }
      for connection in shard.worker.map({ Array($0.echoes.values) }) ?? [] { connection.close(.goingAway) }
      shard.worker?.console.closeAll()
    }
    // What closing the streams made of their messages is written too.
    for _ in 0..<250 {
      let busy = await context.gather { shard in
        // The farewells of streams that HTTP/2 carries have to leave through it.
        !shard.writing.isIdle || shard.worker?.connections.isEmpty == false
          || shard.worker?.httpConnections.values.contains { $0.hasTunnels } == true
      }
      if !busy.contains(true) { break }
      try? await context.time.sleep(for: pause)
    }
    _ = await context.gather { shard in
      for connection in shard.worker.map({ Array($0.httpConnections.values) }) ?? [] { connection.close() }
    }
    await context.store.close()
    for loop in loops { loop.stop() }
    context.workers = []
    context.log.info("The server has ended")
    context.ended.open()
  }
}
