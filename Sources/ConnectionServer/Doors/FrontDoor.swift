import Connections
import EventLoops
import HTTPCore
import PushHTTP

/// Answers the HTTPS listener: sends on the loop they came on, everything else in a task.
final class FrontDoor: HTTPHandler {
  private let context: ServerContext
  private let table = RouteTable()
  private let slow: HTTPRoutes

  init(context: ServerContext) {
    self.context = context
    slow = HTTPRoutes(context: context)
  }

  func handle(_ request: HTTPRequest, on worker: LoopWorker, _ reply: HTTPReply) {
    let target = RequestTarget(request.target)
    worker.shard.now = worker.loop.now
    worker.shard.wall = worker.loop.wall
    switch table.match(request.method, target.path) {
    case .found(.sendV1, let values):
      worker.sendDoor.sendV1(
        project: values.first ?? "", request.fields, query: target.query, isPretty: target.isPretty,
        request.body
      ) { reply.send($0) }
    case .found(.sendLegacy, _), .found(.sendLegacyGCM, _):
      worker.sendDoor.sendLegacy(request.fields, request.body) { reply.send($0) }
    case .found(let route, let values):
      let (slow, loop, waiting) = (slow, worker.loop, Handover(reply))
      // Not a message: a task costs nothing here that anybody would feel.
      Task {
        let response = await slow.answer(route, values, request)
        loop.submit { waiting.value.send(response) }
      }
    case .otherMethods(let methods):
      reply.send(APIResponse.methodNotAllowed(methods.joined(separator: ", ")).http)
    case .unknown: reply.send(APIResponse.notFound("There is nothing at this path.").http)
    }
  }
}
