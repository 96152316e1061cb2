import Connections
import EventLoops
import HTTPCore

/// WebSockets through streams of HTTP/2 (RFC 8441): the connection carries, each tunnel's channel may be on any loop.
extension HTTPConnection {
  /// Whether a stream carries a connection.
  var hasTunnels: Bool { !tunnels.isEmpty }

  /// - Returns: A channel that opens in this round; nil when the stream is gone or asked for no tunnel.
  func openTunnel(_ number: Int, _ response: HTTPResponse, _ machine: HTTP2ServerConnection) -> Channel? {
    let stream = Int32(truncatingIfNeeded: number)
    guard !isEnded, response.status == 200,
      machine.accept(stream, response, now: loop.now, wall: loop.wall)
    else { return nil }
    handedOut -= 1
    let connection = Handover(self)
    let pipe = BytePipe(consumedStep: limits.streamWindowBytes / 4) { [loop] in
      loop.submit { connection.value.tunnelWoke(stream) }
    }
    tunnels[stream] = pipe
    passTunnelEvents(machine)
    scheduleFlush()
    let tunnel = Channel(PipeStream(pipe, peer: channel.peer, on: loop))
    tunnel.start()
    return tunnel
  }

  /// What came from the peer goes to the tunnels' channels.
  func passTunnelEvents(_ machine: HTTP2ServerConnection) {
    for event in machine.takeTunnelEvents() {
      guard let pipe = tunnels[event.stream] else { continue }
      switch event.what {
      case .bytes(let bytes): pipe.deliver(bytes)
      case .end: pipe.deliverEnd()
      case .closed:
        tunnels[event.stream] = nil
        tunnelsQueued.remove(event.stream)
        pipe.breakOff()
      }
    }
  }

  /// After a flush: channels whose bytes have left may send more.
  func tellTunnels(_ machine: HTTP2ServerConnection) {
    guard !tunnelsQueued.isEmpty else { return }
    for stream in tunnelsQueued {
      let left = machine.bytesQueued(stream)
      tunnels[stream]?.carrierHolds(left)
      if left == 0 { tunnelsQueued.remove(stream) }
    }
  }

  func breakTunnels() {
    let broken = tunnels
    tunnels = [:]
    tunnelsQueued = []
    for pipe in broken.values { pipe.breakOff() }
  }

  /// A tunnel's channel has written, read or ended.
  private func tunnelWoke(_ stream: Int32) {
    guard !isEnded, case .two(let machine) = machine, let pipe = tunnels[stream] else { return }
    let news = pipe.takeNews()
    if news.consumed > 0 { machine.consumed(stream, news.consumed) }
    if !news.bytes.isEmpty {
      machine.send(stream, news.bytes)
      tunnelsQueued.insert(stream)
    }
    switch news.ending {
    case .finished: machine.finish(stream)
    case .closed: machine.cancel(stream)
    case nil: break
    }
    scheduleFlush()
  }
}
