import Connections
import EventLoops
import Seams
import Synchronization
import TLSCore

/// A connection of bytes to a server on this machine, for tasks: it collects what comes.
package final class TestLine: Sendable {
  package struct Inbox: Sendable, CustomStringConvertible {
    package var bytes: [UInt8] = []
    /// How the connection ended.
    package var end: String?

    package var description: String {
      let text = String(decoding: bytes.suffix(500), as: UTF8.self)
      return "\(bytes.count) bytes (\(text))" + (end.map { ", end: \($0)" } ?? "")
    }
  }

  package let inbox: Watched<Inbox>
  private let channel: Handover<Channel>
  private let loop: EventLoop
  private let isClosing = Atomic<Bool>(false)

  private init(_ channel: Channel, _ inbox: Watched<Inbox>, on loop: EventLoop) {
    self.channel = Handover(channel)
    self.inbox = inbox
    self.loop = loop
  }

  /// The loop of all test connections of the process; never stopped.
  private static let loop: Result<EventLoop, NetworkFault> = {
    let loop = EventLoop(name: "test-kit")
    do throws(NetworkFault) {
      try loop.start()
      return .success(loop)
    } catch {
      return .failure(error)
    }
  }()

  /// - Parameter authority: PEM file of the authority to trust; nil for a plain connection.
  package static func connect(
    port: Int, authority: String?, protocols: [String], within time: Duration
  ) async throws -> TestLine {
    let loop = try Self.loop.get()
    var context: TLSContext?
    if let authority {
      var options = TLSClientOptions(trust: .files([authority]))
      options.protocols = protocols
      context = try TLSContext(client: options)
    }
    let inbox = Watched(Inbox())
    let sent = context
    return try await withCheckedThrowingContinuation { continuation in
      loop.submit {
        ChannelConnector.connect(
          host: "localhost", port: UInt16(clamping: port), context: sent, timeout: time, on: loop
        ) { result in
          switch result {
          case .failure(let reason): continuation.resume(throwing: reason)
          case .success(let channel):
            channel.delegate = Receiver(inbox)
            continuation.resume(returning: TestLine(channel, inbox, on: loop))
          }
        }
      }
    }
  }

  package func send(_ bytes: [UInt8]) { perform { $0.send(bytes) } }
  package func close() {
    isClosing.store(true, ordering: .relaxed)
    perform { $0.close() }
  }
  package func abort() { perform { $0.abort() } }
  package func pauseReading() { perform { $0.pauseReading() } }
  package func resumeReading() { perform { $0.resumeReading() } }

  private func perform(_ work: @escaping @Sendable (Channel) -> Void) {
    let channel = channel
    loop.submit { work(channel.value) }
  }

  deinit {
    // A close in order goes on without this object.
    if !isClosing.load(ordering: .relaxed) { abort() }
  }

  private final class Receiver: ChannelDelegate {
    private let inbox: Watched<Inbox>
    init(_ inbox: Watched<Inbox>) { self.inbox = inbox }

    func received(_ plaintext: UnsafeRawBufferPointer) { inbox.update { $0.bytes += plaintext } }
    func ended(_ reason: ChannelEnd) { inbox.update { $0.end = "\(reason)" } }
  }
}
