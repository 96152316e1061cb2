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
    worker.shard.now = worker.loop.now
    worker.shard.wall = worker.loop.wall
    if request.method == "POST", let known = worker.sendTargets.find(request.target) {
      send(request, to: known, on: worker, reply)
      return
    }
    let target = RequestTarget(request.target)
    switch table.match(request.method, target.path) {
    case .found(let route, let values)
    where route == .sendV1 || route == .sendLegacy || route == .sendLegacyGCM:
      let found = SendTarget(
        route: route == .sendV1 ? .sendV1 : .sendLegacy, project: values.first ?? "", query: target.query,
        isPretty: target.isPretty)
      worker.sendTargets.keep(found, for: request.target)
      send(request, to: found, on: worker, reply)
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

  private func send(_ request: HTTPRequest, to target: SendTarget, on worker: LoopWorker, _ reply: HTTPReply)
  {
    let sink = HTTPSink(reply, target.route, on: worker)
    if target.route == .sendV1 {
      worker.sendDoor.sendV1(
        project: target.project, request.fields, query: target.query, isPretty: target.isPretty, request.body,
        sink)
    } else {
      worker.sendDoor.sendLegacy(request.fields, request.body, sink)
    }
  }
}

/// The target of a send, taken apart.
struct SendTarget {
  /// Of HTTP v1 or of legacy HTTP.
  var route: HTTPRoute
  var project: String
  var query: [String: String]
  var isPretty: Bool
}

/// Targets of sends that a loop met lately, so that each is taken apart once.
///
/// There are few: a project has one or two. When somebody makes more up, all are forgotten.
struct SendTargets {
  private var known: [String: SendTarget] = [:]
  private let knownMax = 64

  func find(_ text: String) -> SendTarget? { known[text] }

  mutating func keep(_ target: SendTarget, for text: String) {
    // A query may hold a credential, which is not kept.
    guard text.utf8.count <= 256, target.query["access_token"] == nil, target.query["key"] == nil else {
      return
    }
    if known.count >= knownMax { known = [:] }
    known[text] = target
  }
}
