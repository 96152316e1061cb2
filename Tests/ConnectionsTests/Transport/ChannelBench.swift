import Connections
import EventLoops
import Glibc
import TLSCore

/// Gathers what a channel hears.
// Sendable by argument: the closures are set before the channel starts and called on its loop.
final class ChannelLog: ChannelDelegate, @unchecked Sendable {
  struct Seen {
    var bytes: [UInt8] = []
    var opened = 0
    var writables = 0
    var inputEnds = 0
    var deliveries = 0
    var ends: [ChannelEnd] = []
    var count: Int { bytes.count }
  }
  let seen = Watched(Seen())
  var onOpened: (() -> Void)?
  var onReceived: ((UnsafeRawBufferPointer) -> Void)?
  var onInputEnd: (() -> Void)?

  func opened() {
    seen.update { $0.opened += 1 }
    onOpened?()
  }
  func received(_ plaintext: UnsafeRawBufferPointer) {
    seen.update {
      $0.bytes.append(contentsOf: plaintext)
      $0.deliveries += 1
    }
    onReceived?(plaintext)
  }
  func writable() { seen.update { $0.writables += 1 } }
  func inputEnded() {
    seen.update { $0.inputEnds += 1 }
    onInputEnd?()
  }
  func ended(_ reason: ChannelEnd) { seen.update { $0.ends.append(reason) } }

  /// Waits for the end and gives it.
  func end(within seconds: Int = 20) -> ChannelEnd? {
    _ = seen.wait(within: seconds) { !$0.ends.isEmpty }
    return seen.current.ends.first
  }
}

/// A channel with its loop, for tests that call it from their own thread.
// Sendable by argument: the channel is used on its loop alone.
final class ChannelHolder: @unchecked Sendable {
  private let channel: Channel
  private let loop: any Loop

  init(_ channel: Channel) {
    self.channel = channel
    loop = channel.loop
  }

  /// Runs `body` on the loop and waits for it.
  @discardableResult
  func onLoop<Value: Sendable>(_ body: @escaping @Sendable (Channel) -> Value) -> Value? {
    let result = Watched<Value?>(nil)
    loop.submit {
      let value = body(self.channel)
      result.update { $0 = value }
    }
    _ = result.wait { $0 != nil }
    return result.current
  }
}

/// A server loop and a client loop on loopback, with TLS or without.
final class ChannelBench {
  let server = EventLoop(name: "server")
  let client = EventLoop(name: "client")
  let port: UInt16
  let certificates: TestCertificates
  let isPlain: Bool

  /// - Parameter accepted: Sets the delegate of a channel that was accepted; it is started after.
  init(
    plain isPlain: Bool = false, options change: (inout TLSServerOptions) -> Void = { _ in },
    accepted: @escaping @Sendable (Channel) -> Void
  ) throws {
    self.isPlain = isPlain
    certificates = try TestCertificates.shared.get()
    var options = TLSServerOptions(
      certificateChainFile: certificates.chain, privateKeyFile: certificates.key)
    change(&options)
    let context = isPlain ? nil : try TLSContext(server: options)
    let socket = try ListeningSocket(host: "127.0.0.1", port: 0)
    port = socket.port
    try server.start()
    try client.start()
    let server = server
    server.submit {
      _ = try? TCPListener(
        socket, on: server,
        accepted: { connection in
          guard let channel = try? Channel(accepting: connection, context: context, on: server) else {
            return
          }
          accepted(channel)
          channel.start()
        })
    }
  }

  deinit {
    client.stop()
    server.stop()
  }

  func clientContext(_ change: (inout TLSClientOptions) -> Void = { _ in }) throws -> TLSContext {
    var options = TLSClientOptions(trust: .files([certificates.authority]))
    change(&options)
    return try TLSContext(client: options)
  }

  /// Opens a channel to the server and waits for the outcome.
  func connect(
    name: String = "localhost", context: TLSContext? = nil, timeout: Duration = .seconds(10),
    delegate: ChannelLog = ChannelLog()
  ) throws -> Result<ChannelHolder, ChannelEnd> {
    let context = isPlain ? nil : try context ?? clientContext()
    let outcome = Watched<Result<ChannelHolder, ChannelEnd>?>(nil)
    let client = client
    let port = port
    client.submit {
      ChannelConnector.connect(
        host: "127.0.0.1", port: port, name: name, context: context, timeout: timeout, on: client
      ) { result in
        let held = result.map { channel in
          channel.delegate = delegate
          return ChannelHolder(channel)
        }
        outcome.update { $0 = held }
      }
    }
    _ = outcome.wait { $0 != nil }
    return outcome.current ?? .failure(.network(.timeout))
  }
}

/// Sends back what comes.
final class EchoChannel: ChannelDelegate {
  let channel: Channel
  init(_ channel: Channel) {
    self.channel = channel
    channel.delegate = self
  }
  func received(_ plaintext: UnsafeRawBufferPointer) { channel.send(plaintext) }
  func ended(_ reason: ChannelEnd) {}
}

/// Bytes that differ by place, made fast: a run of prime length over and over.
func pattern(_ count: Int) -> [UInt8] {
  let run = (0..<8_191).map { UInt8(truncatingIfNeeded: $0 &* 131 >> 5) }
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count + run.count)
  while bytes.count < count { bytes += run }
  bytes.removeLast(bytes.count - count)
  return bytes
}
