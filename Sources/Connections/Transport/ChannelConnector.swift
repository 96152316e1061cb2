package import EventLoops
import Seams
package import TLSCore

/// One attempt to open a channel to a server: resolve, connect, shake hands, all within one time.
package final class ChannelConnector {
  private let loop: any Loop
  private let host: String
  private let port: UInt16
  private let context: TLSContext?
  private var completion: ((Result<Channel, ChannelEnd>) -> Void)?
  private var tcp: (any ConnectAttempt)?
  private var channel: Channel?
  private var timer: LoopTimer?

  /// Connects.
  ///
  /// - Parameters:
  ///   - context: A client's; nil for a plain channel. The certificate must be for `name`, by default `host`.
  ///   - timeout: For all of it.
  ///   - completion: Called once, on the loop, never before `connect` returns. It sets the channel's delegate, which
  ///     then gets all plaintext but no `opened`.
  @discardableResult
  package static func connect(
    host: String, port: UInt16, name: String? = nil, context: TLSContext?, timeout: Duration,
    on loop: any Loop, completion: @escaping (Result<Channel, ChannelEnd>) -> Void
  ) -> ChannelConnector {
    let connector = ChannelConnector(name ?? host, port, context, loop, completion)
    connector.timer = loop.after(timeout) { [weak connector] in
      connector?.finish(.failure(.network(.timeout)))
    }
    connector.tcp = loop.connect(host: host, port: port, timeout: timeout) {
      connector.connected($0)
    }
    return connector
  }

  private init(
    _ host: String, _ port: UInt16, _ context: TLSContext?, _ loop: any Loop,
    _ completion: @escaping (Result<Channel, ChannelEnd>) -> Void
  ) {
    self.host = host
    self.port = port
    self.context = context
    self.loop = loop
    self.completion = completion
  }

  /// Gives up; the completion hears `.aborted`.
  ///
  /// Harmless when done.
  package func cancel() { finish(.failure(.aborted)) }

  private func connected(_ result: Result<any ByteStream, NetworkFault>) {
    tcp = nil
    switch result {
    case .failure(let fault): finish(.failure(.network(fault)))
    case .success(let stream):
      guard completion != nil else {
        stream.close()
        return
      }
      do throws(TLSFault) {
        var session: TLSSession?
        if let context { session = try TLSSession(client: context, host: host, port: port) }
        let made = Channel(stream, tls: session)
        channel = made
        made.delegate = self
        made.start()
      } catch {
        stream.close()
        finish(.failure(.tls(error)))
      }
    }
  }

  private func finish(_ result: Result<Channel, ChannelEnd>) {
    guard let completion else { return }
    self.completion = nil
    timer?.cancel()
    tcp?.cancel()
    tcp = nil
    if case .failure = result {
      channel?.abort()
      loop.later { completion(result) }
    } else {
      channel?.delegate = nil
      completion(result)
    }
    channel = nil
  }
}

extension ChannelConnector: ChannelDelegate {
  package func opened() {
    if let channel { finish(.success(channel)) }
  }

  package func received(_ plaintext: UnsafeRawBufferPointer) {}

  package func ended(_ reason: ChannelEnd) { finish(.failure(reason)) }
}
