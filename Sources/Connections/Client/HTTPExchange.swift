package import EventLoops
package import HTTPCore
package import TLSCore

/// Why an HTTPS request got no answer.
package enum HTTPExchangeFault: Error, Sendable, Hashable, CustomStringConvertible {
  case channel(ChannelEnd)
  /// The answer is no HTTP, or larger than allowed.
  case malformed(String)
  /// No whole answer in time.
  case overdue

  /// For people.
  package var description: String {
    switch self {
    case .channel(let end): end.description
    case .malformed(let what): "the answer cannot be read: \(what)"
    case .overdue: "no answer in time"
    }
  }
}

/// One HTTPS request on a connection of its own, within one time.
///
/// Belongs to its loop.
package final class HTTPExchange: ChannelDelegate {
  private let loop: any Loop
  private let exchange: HTTPClientExchange
  private let bytes: [UInt8]
  private var completion: ((Result<HTTPResponse, HTTPExchangeFault>) -> Void)?
  private var channel: Channel?
  private var timer: LoopTimer?

  /// Sends `request`.
  ///
  /// - Parameters:
  ///   - timeout: From now to the end of the answer.
  ///   - completion: Called once, on the loop.
  package static func send(
    _ request: HTTPRequest, host: String, port: UInt16, name: String? = nil, context: TLSContext?,
    timeout: Duration, on loop: any Loop,
    completion: @escaping (Result<HTTPResponse, HTTPExchangeFault>) -> Void
  ) {
    let exchange = HTTPExchange(request, host: "\(host):\(port)", on: loop, completion)
    exchange.timer = loop.after(timeout) { [weak exchange] in exchange?.finish(.failure(.overdue)) }
    ChannelConnector.connect(
      host: host, port: port, name: name, context: context, timeout: timeout, on: loop
    ) { exchange.connected($0) }
  }

  private init(
    _ request: HTTPRequest, host: String, on loop: any Loop,
    _ completion: @escaping (Result<HTTPResponse, HTTPExchangeFault>) -> Void
  ) {
    self.loop = loop
    self.completion = completion
    exchange = HTTPClientExchange(method: request.method)
    bytes = HTTPClientExchange.requestBytes(request, host: host)
  }

  private func connected(_ result: Result<Channel, ChannelEnd>) {
    switch result {
    case .failure(let end): finish(.failure(.channel(end)))
    case .success(let channel):
      guard completion != nil else {
        channel.abort()
        return
      }
      self.channel = channel
      channel.delegate = self
      channel.send(bytes)
    }
  }

  package func received(_ plaintext: UnsafeRawBufferPointer) {
    do throws(HTTPFault) {
      if let response = try exchange.receive(plaintext) { finish(.success(response)) }
    } catch {
      finish(.failure(.malformed("\(error)")))
    }
  }

  package func ended(_ reason: ChannelEnd) {
    channel = nil
    guard completion != nil else { return }
    do throws(HTTPFault) {
      if let response = try exchange.receiveEnd() {
        finish(.success(response))
      } else {
        finish(.failure(.channel(reason)))
      }
    } catch {
      finish(.failure(.channel(reason)))
    }
  }

  private func finish(_ result: Result<HTTPResponse, HTTPExchangeFault>) {
    guard let completion else { return }
    self.completion = nil
    timer?.cancel()
    channel?.close()
    channel = nil
    completion(result)
  }
}
