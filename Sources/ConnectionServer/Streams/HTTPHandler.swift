import Connections
import EventLoops
import HTTPCore

/// Who answers the requests of a listener.
protocol HTTPHandler: AnyObject, Sendable {
  /// Answers `request` through `reply`, at once or later.
  ///
  /// Called on the connection's loop, which is `worker`'s; must not block.
  func handle(_ request: HTTPRequest, on worker: LoopWorker, _ reply: HTTPReply)
}

/// The answer that one request awaits.
///
/// Belongs to the loop of its connection. A reply that is given up without an answer answers 500, so that no
/// client waits for ever.
final class HTTPReply {
  private let connection: HTTPConnection
  private let number: Int
  private var isSent = false

  init(_ connection: HTTPConnection, number: Int) {
    self.connection = connection
    self.number = number
  }

  deinit {
    guard !isSent else { return }
    let (connection, number) = (Handover(connection), number)
    connection.value.loop.submit { connection.value.answer(number, HTTPResponse(status: 500)) }
  }

  /// Whether nobody waits for the answer any more.
  var isGone: Bool { isSent || !connection.awaits(number) }

  /// Answers, once; dropped when the connection or its stream is gone.
  func send(_ response: HTTPResponse) {
    guard !isSent else { return }
    isSent = true
    connection.answer(number, response)
  }

  /// Ends the connection without an answer.
  func cut() {
    guard !isSent else { return }
    isSent = true
    if connection.awaits(number) { connection.close() }
  }

  /// Lets the connection end when what was asked is answered.
  func drain() { connection.drain() }

  /// Answers 101 and gives the connection away, for the protocol that the client asked for; or answers an extended
  /// CONNECT of HTTP/2 with 200 and gives a channel through its stream.
  ///
  /// The caller sets a delegate of the channel at once, and first takes the bytes that came behind the request.
  ///
  /// - Returns: Nil when the connection or stream is gone, or awaits another status.
  func upgrade(_ response: HTTPResponse) -> (channel: Channel, unread: [UInt8])? {
    guard !isSent, let given = connection.upgrade(number, response) else { return nil }
    isSent = true
    return given
  }
}

/// The edge between loops and async code: one task a request, for paths that may be slow.
final class AsyncHTTPHandler: HTTPHandler {
  private let answer: @Sendable (HTTPRequest) async -> HTTPResponse

  init(_ answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse) { self.answer = answer }

  func handle(_ request: HTTPRequest, on worker: LoopWorker, _ reply: HTTPReply) {
    let (answer, loop, reply) = (answer, worker.loop, Handover(reply))
    Task {
      let response = await answer(request)
      loop.submit { reply.value.send(response) }
    }
  }
}
