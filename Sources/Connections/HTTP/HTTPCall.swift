package import EventLoops
package import HTTPCore
package import TLSCore

/// One HTTP/1.1 request over a connection of its own: for registration and administration.
package enum HTTPCall {
  /// Why there is no answer.
  package enum Fault: Error, Sendable, CustomStringConvertible {
    case cannotConnect(ChannelEnd)
    case cut(ChannelEnd)
    case overdue
    case malformed(HTTPFault)

    package var description: String {
      switch self {
      case .cannotConnect(let end): "cannot connect: \(end)"
      case .cut(let end): "the connection ended before the answer: \(end)"
      case .overdue: "no answer in time"
      case .malformed(let fault): "the answer is not HTTP/1.1: \(fault)"
      }
    }
  }

  /// Sends a request and waits for its answer.
  ///
  /// - Parameters:
  ///   - context: A client's, for HTTPS; nil for plain HTTP.
  ///   - timeout: For all of it.
  package static func perform(
    _ request: HTTPRequest, host: String, port: UInt16, context: TLSContext?, timeout: Duration,
    on loop: EventLoop
  ) async throws(Fault) -> HTTPResponse {
    let result = await withCheckedContinuation { (continuation: CheckedContinuation<Outcome, Never>) in
      let isComing = loop.submit {
        Exchange(request, host, port, context, timeout, loop) { continuation.resume(returning: $0) }.begin()
      }
      if !isComing { continuation.resume(returning: .failure(.cannotConnect(.loopStopped))) }
    }
    return try result.get()
  }

  fileprivate typealias Outcome = Result<HTTPResponse, Fault>

  /// The call on its loop. Kept alive by the connector, then by the channel.
  private final class Exchange: ChannelDelegate {
    private let request: HTTPRequest
    private let host: String
    private let port: UInt16
    private let context: TLSContext?
    private let timeout: Duration
    private let loop: EventLoop
    private var completion: ((Outcome) -> Void)?
    private var channel: Channel?
    private var timer: LoopTimer?
    private let exchange: HTTPClientExchange

    init(
      _ request: HTTPRequest, _ host: String, _ port: UInt16, _ context: TLSContext?, _ timeout: Duration,
      _ loop: EventLoop, _ completion: @escaping (Outcome) -> Void
    ) {
      self.request = request
      self.host = host
      self.port = port
      self.context = context
      self.timeout = timeout
      self.loop = loop
      self.completion = completion
      exchange = HTTPClientExchange(method: request.method)
    }

    func begin() {
      timer = loop.after(timeout) { self.finish(.failure(.overdue)) }
      ChannelConnector.connect(host: host, port: port, context: context, timeout: timeout, on: loop) { result in
        switch result {
        case .failure(let end): self.finish(.failure(.cannotConnect(end)))
        case .success(let channel):
          self.channel = channel
          channel.delegate = self
          channel.send(HTTPClientExchange.requestBytes(self.request, host: "\(self.host):\(self.port)"))
        }
      }
    }

    func received(_ plaintext: UnsafeRawBufferPointer) {
      do throws(HTTPFault) {
        if let response = try exchange.receive(plaintext) { finish(.success(response)) }
      } catch { finish(.failure(.malformed(error))) }
    }

    func ended(_ reason: ChannelEnd) {
      if let response = try? exchange.receiveEnd() { return finish(.success(response)) }
      finish(.failure(.cut(reason)))
    }

    private func finish(_ outcome: Outcome) {
      guard let completion else { return }
      self.completion = nil
      timer?.cancel()
      timer = nil
      channel?.close()
      channel = nil
      completion(outcome)
    }
  }
}
