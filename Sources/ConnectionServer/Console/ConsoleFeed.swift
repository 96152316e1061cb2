import Connections
import EventLoops
import JSONCore
import PushModel
import Seams
import Stores
import Telemetry
import WebSocketCore

/// One page of the console that watches: a WebSocket at `/admin/v1/feed` of the administration listener.
///
/// The first message must be `{"key":"…"}` with the administration key; `{"filter":{…}}` chooses what the tail shows.
/// What the page gets is one message a second, never more than one ahead of what it reads: a page that does not read
/// is passed over, and after ``missedMax`` seconds cut off.
final class ConsoleFeed: ChannelDelegate {
  private static let keyWithin: Duration = .seconds(5)
  static let missedMax = 60

  private unowned let worker: LoopWorker
  private let context: ServerContext
  private let channel: Channel
  private let socket: MessageSocket
  private var keyTimer: LoopTimer?
  private var isEnded = false
  private(set) var isWatching = false
  private(set) var filter = ConsoleFilter()
  private var missed = 0

  /// Bytes that wait for the page; for tests.
  var queuedBytes: Int { channel.queuedBytes }

  init(worker: LoopWorker, channel: Channel) {
    self.worker = worker
    context = worker.context
    self.channel = channel
    var limits = WebSocketLimits()
    limits.messageBytesMax = 16_384
    socket = MessageSocket(channel, limits: limits, on: worker.loop)
    worker.console.add(self)
    // What the system holds for a page that does not read is bounded too.
    channel.setSendBuffer(bytes: 65_536)
    channel.delegate = self
    socket.onMessage = { [unowned self] in read(Array($1)) }
    socket.onEnd = { [unowned self] in finish() }
    keyTimer = worker.loop.after(Self.keyWithin) { [weak self] in self?.close(.policyViolation) }
  }

  // MARK: From the page

  func received(_ bytes: UnsafeRawBufferPointer) { socket.receive(bytes) }

  func ended(_ reason: ChannelEnd) { finish() }

  private func read(_ message: [UInt8]) {
    guard !isEnded, let body = try? JSONValue(parsing: message) else { return close(.invalidData) }
    guard isWatching else {
      guard let key = body["key"]?.string, context.accounts.key(key.trimmed, .admin) != nil else {
        return close(.policyViolation)
      }
      keyTimer?.cancel()
      isWatching = true
      return worker.console.begin(self)
    }
    do {
      let filter = try ConsoleFilter(body["filter"] ?? .object([]))
      choose(filter)
    } catch {
      tell(error.reason)
    }
  }

  /// A token is looked up first: the shards know devices by number.
  private func choose(_ filter: ConsoleFilter) {
    guard let token = filter.token else {
      self.filter = filter
      return
    }
    let (loop, me) = (worker.loop, Handover(self))
    context.store.lookUp([token]) { result in
      loop.submit { me.value.found(filter, (try? result.get())?.first ?? nil) }
    }
  }

  private func found(_ filter: ConsoleFilter, _ registration: Registration?) {
    guard !isEnded else { return }
    guard let registration else { return tell("No registration ever had this token.") }
    self.filter = filter
    self.filter.device = registration.device
  }

  private func tell(_ fault: String) { send(JSONValue.object([.init("error", .string(fault))]).bytes) }

  // MARK: To the page

  /// Whether it has read what it was sent; counts when it has not, and ends it in the end.
  func takesMore() -> Bool {
    guard isWatching, !isEnded else { return false }
    guard channel.queuedBytes > 0 else {
      missed = 0
      return true
    }
    missed += 1
    if missed > Self.missedMax {
      channel.abort()
      finish()
    }
    return false
  }

  func send(_ text: [UInt8]) {
    guard !isEnded else { return }
    text.withUnsafeBytes { socket.send(.text, $0) }
  }

  func close(_ code: CloseCode) {
    guard !isEnded else { return }
    socket.close(code)
    channel.close()
    finish()
  }

  private func finish() {
    guard !isEnded else { return }
    isEnded = true
    socket.stop()
    keyTimer?.cancel()
    keyTimer = nil
    worker.console.remove(self, wasWatching: isWatching)
    isWatching = false
  }
}
