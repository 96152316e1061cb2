import Bytes
import Connections
import EventLoops
import Seams

/// A registered device, as a load test logs it in.
package struct LoadIdentity: Sendable, Equatable {
  package var token: String
  package var id: String
  package var secret: String

  package init(token: String, id: String, secret: String) {
    self.token = token
    self.id = id
    self.secret = secret
  }
}

/// One device of a load test.
///
/// Belongs to the run's loop.
final class LoadDevice {
  enum Habit: Equatable {
    case prompt
    /// Acks late.
    case late(Duration)
    /// Reads so many bytes a second.
    case slow(Int)
    /// Neither reads nor answers once it is logged in.
    case halfOpen
  }

  let index: Int
  let identity: LoadIdentity
  let token: [UInt8]
  var habit: Habit
  private(set) var stream: LeanStream?
  private unowned let run: LoadRun
  /// Ids that were shown, as a device remembers them.
  private var shown = RememberedIDs()
  /// Upstream messages without an answer.
  private(set) var upstream: [Int] = []
  /// Messages that the server said it discarded.
  private(set) var discarded = 0
  private var allowance = 0
  private var bytesSeen = 0
  private var failures = 0
  private var isConnecting = false {
    didSet {
      if isConnecting != oldValue { run.connecting += isConnecting ? 1 : -1 }
    }
  }
  /// Logged in, and in the run's count of those.
  private var isCounted = false {
    didSet {
      if isCounted != oldValue { run.connected += isCounted ? 1 : -1 }
    }
  }
  private var began = Moment(ns: 0)

  init(_ index: Int, _ identity: LoadIdentity, habit: Habit, run: LoadRun) {
    self.index = index
    self.identity = identity
    token = Array(identity.token.utf8)
    self.habit = habit
    self.run = run
  }

  var isUp: Bool { stream?.isReady ?? false }

  func connect() {
    guard stream == nil else { return }
    isConnecting = true
    began = run.clock
    bytesSeen = 0
    let stream = LeanStream(
      identity: identity.id, password: identity.secret, server: run.setup.deviceServer ?? run.setup.server,
      scratch: run.scratch,
      on: run.loop)
    self.stream = stream
    stream.ready = { [unowned self] in opened($0) }
    stream.received = { [unowned self] in received($0, $1) }
    stream.failed = { [unowned self] in lost($0) }
    stream.connect()
  }

  private func opened(_ stream: LeanStream) {
    failures = 0
    isConnecting = false
    isCounted = true
    run.deviceUp(self, after: run.clock - began)
    for number in upstream { write(upstream: number) }
    if habit == .halfOpen { stream.pause() }
  }

  private func lost(_ why: String) {
    let wasUp = bytesSeen > 0 || failures == 0
    stream = nil
    isConnecting = false
    isCounted = false
    failures += wasUp ? 1 : 2
    run.deviceLost(self, why, failures: failures)
  }

  /// Cuts the stream, as a network that goes away does.
  func cut() {
    isConnecting = false
    isCounted = false
    stream?.close()
    stream = nil
  }

  /// Reads and acks like a good device from now on.
  func behave() {
    let was = habit
    habit = .prompt
    switch was {
    case .slow: stream?.resume()
    case .prompt, .late, .halfOpen: break
    }
  }

  // MARK: Messages

  private func received(_ stream: LeanStream, _ json: UnsafeRawBufferPointer) {
    if case .slow = habit {
      allowance -= stream.bytesRead - bytesSeen
      if allowance < 0 { stream.pause() }
    }
    bytesSeen = stream.bytesRead
    let id = Lean.messageID(json)
    if let id, let mark = Lean.text(of: json, behind: "\"weir_load\":\"") {
      run.shown(by: self, mark, id: RememberedIDs.key(of: id))
      return ack(id, on: stream)
    }
    guard let type = Lean.text(of: json, behind: "\"message_type\":\"") else {
      // Of somebody else's.
      if let id { ack(id, on: stream) }
      return
    }
    if type.elementsEqual("deleted_messages".utf8) {
      let total = Lean.text(of: json, behind: "\"total_deleted\":\"")
      discarded += total.flatMap { Lean.number($0[...]) } ?? 0
    } else if let id, let number = run.upstreamNumber(id), let place = upstream.firstIndex(of: number) {
      upstream.remove(at: place)
      run.upstreamAnswered(number, isAck: type.elementsEqual("ack".utf8))
    }
  }

  /// Whether this id was shown before.
  func hasShown(_ id: UInt64) -> Bool { shown.contains(id) }

  func remember(_ id: UInt64) { shown.insert(id) }

  private func ack(_ id: UnsafeRawBufferPointer, on stream: LeanStream) {
    guard case .late(let delay) = habit else { return write(ackOf: id, on: stream) }
    let id = Array(id)
    run.loop.after(delay) { [weak stream, weak self] in
      guard let self, let stream, stream === self.stream else { return }
      id.withUnsafeBytes { self.write(ackOf: $0, on: stream) }
    }
  }

  private func write(ackOf id: UnsafeRawBufferPointer, on stream: LeanStream) {
    run.output.removeAll()
    run.output.append(
      "<message><gcm xmlns=\"google:mobile:data\">{\"message_type\":\"ack\",\"message_id\":\"")
    run.output.append(id)
    run.output.append("\"}</gcm></message>")
    run.output.bytes.withUnsafeBytes { stream.send($0) }
  }

  func send(upstream number: Int) {
    upstream.append(number)
    write(upstream: number)
  }

  private func write(upstream number: Int) {
    guard let stream, stream.isReady else { return }
    run.output.removeAll()
    run.output.append("<message><gcm xmlns=\"google:mobile:data\">{\"to\":\"")
    run.output.append(run.setup.senderID)
    run.output.append("@fcm.googleapis.com\",\"message_id\":\"u-")
    run.output.append(run.runID)
    run.output.append("-")
    run.output.append(decimal: Int64(number))
    run.output.append("\",\"token\":\"")
    run.output.append(token)
    run.output.append("\",\"data\":{\"kind\":\"load\"}}</gcm></message>")
    run.output.bytes.withUnsafeBytes { stream.send($0) }
  }

  // MARK: Slow reading

  /// A tenth of a second has passed.
  func mayRead() {
    guard case .slow(let bytes) = habit else { return }
    allowance = min(allowance + max(1, bytes / 10), max(1, bytes))
    if allowance > 0 { stream?.resume() }
  }
}

/// The last message ids that a device showed: as many as the device runtime remembers.
struct RememberedIDs {
  static let countMax = 1_000
  private var ids: [UInt64] = []
  private var oldest = 0

  func contains(_ id: UInt64) -> Bool { ids.contains(id) }

  mutating func insert(_ id: UInt64) {
    if ids.count < Self.countMax {
      ids.append(id)
    } else {
      ids[oldest] = id
      oldest = (oldest + 1) % Self.countMax
    }
  }

  /// FNV-1a of 64 bits: ids of a server are hashes already.
  static func key(of id: UnsafeRawBufferPointer) -> UInt64 {
    id.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}
