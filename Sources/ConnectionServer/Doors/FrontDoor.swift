import Connections
import EventLoops
import HTTPCore
import PushHTTP
import Seams

/// Answers the HTTPS listener: sends on the loop they came on, everything else in a task.
final class FrontDoor: HTTPHandler {
  private let context: ServerContext
  private let table = RouteTable()
  private let slow: HTTPRoutes
  private let crossOrigin: CrossOrigin

  init(context: ServerContext) {
    self.context = context
    slow = HTTPRoutes(context: context)
    crossOrigin = CrossOrigin(origin: context.configuration.registrationOrigin)
  }

  func handle(_ request: HTTPRequest, on worker: LoopWorker, _ reply: HTTPReply) {
    let target = RequestTarget(request.target)
    worker.shard.now = worker.loop.now
    worker.shard.wall = worker.loop.wall
    switch table.match(request.method, target.path) {
    case .found(.sendV1, let values):
      worker.sendDoor.sendV1(
        project: values.first ?? "", request.fields, query: target.query, isPretty: target.isPretty,
        request.body, HTTPSink(reply, .sendV1, on: worker))
    case .found(.sendLegacy, _), .found(.sendLegacyGCM, _):
      worker.sendDoor.sendLegacy(request.fields, request.body, HTTPSink(reply, .sendLegacy, on: worker))
    case .found(.batch, _):
      // No body holds a number that was never used.
      let boundary = "batch_\(worker.shard.numbers.next(worker.shard.wall))"
      BatchDoor.run(request, worker.sendDoor, table, boundary: boundary, HTTPSink(reply, .batch, on: worker))
    case .found(let route, let values):
      let waiting = Handover(HTTPSink(reply, route, on: worker))
      let (slow, crossOrigin, loop) = (slow, crossOrigin, worker.loop)
      // Not a message: a task costs nothing here that anybody would feel.
      Task {
        var response = await slow.answer(route, values, request)
        crossOrigin.mark(&response, target.path)
        loop.submit { [response] in waiting.value(response) }
      }
    case .otherMethods(let methods) where request.method == "OPTIONS":
      reply.send(crossOrigin.options(methods, target.path, request))
    case .otherMethods(let methods):
      reply.send(APIResponse.methodNotAllowed(methods.joined(separator: ", ")).http)
    case .unknown: reply.send(APIResponse.notFound("There is nothing at this path.").http)
    }
  }
}
