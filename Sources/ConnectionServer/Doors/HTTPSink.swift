import EventLoops
import HTTPCore
import PushHTTP
import Seams

/// Where the answer to one send goes: a request's reply, or a place in a batch.
struct HTTPSink {
  let send: (HTTPResponse) -> Void
  /// Ends the connection without an answer; for faults that tests ask for.
  let cut: () -> Void
  /// Lets the connection end after what was asked is answered.
  let drain: () -> Void

  func callAsFunction(_ response: HTTPResponse) { send(response) }
}

extension HTTPSink {
  /// To a request's reply, counted for its route.
  init(_ reply: HTTPReply, _ route: HTTPRoute, on worker: LoopWorker) {
    let began = worker.loop.now
    self.init(
      send: { [unowned worker] response in
        worker.httpMeter.answered(route, status: response.status, after: worker.loop.now - began)
        reply.send(response)
      }, cut: { reply.cut() }, drain: { reply.drain() })
  }
}
