import Bytes
import DeviceRuntime
import EventLoops
import Foundation
import LoadGenerator
import Seams
import Synchronization
import TLSCore
import Telemetry

/// Senders and devices on one loop: keeps every sender's window full and every device acking.
///
/// `@unchecked Sendable`: touched on its loop's thread; what others read is atomic.
final class Generator: @unchecked Sendable {
  let loop: EventLoop
  private let context: TLSContext
  private let scratch = LeanStream.Scratch()
  private var devices: [LeanStream] = []
  private var senders: [Sender] = []
  /// Part of message ids, so that no shape repeats those of the one before, nor those of an earlier generator: a server
  /// knows ids again after a restart, and acks what repeats one without handing it out.
  private var shape = Int.random(in: 0..<1_000_000) * 1_000
  private var tokens: [[UInt8]] = []
  private var targets = Int.max
  private let ready = Atomic<Int>(0)
  private let trouble = Mutex<String?>(nil)
  private(set) var latency = Histogram()

  let acked = Atomic<Int>(0)
  let nacked = Atomic<Int>(0)
  let delivered = Atomic<Int>(0)

  /// One sender's stream and when its messages left.
  final class Sender {
    let stream: LeanStream
    let number: Int
    var next = 0
    var sentAt: [Int: Int64] = [:]
    var isSending = false
    init(_ stream: LeanStream, number: Int) {
      self.stream = stream
      self.number = number
    }
  }

  init(caFile: String) throws {
    context = try TLSContext(client: TLSClientOptions(trust: .files([caFile])))
    loop = EventLoop(name: "generator")
    loop.loopbackSources = 4
    try loop.start()
  }

  private func server(_ port: UInt16, isWebSocket: Bool = false) -> LeanServer {
    LeanServer(
      host: "127.0.0.1", port: port, name: "localhost", context: context,
      webSocketPath: isWebSocket ? "/xmpp" : nil)
  }

  /// - Parameter isWebSocket: The port is that of HTTPS.
  func connectDevices(
    _ credentials: [Device.Credentials], port: UInt16, isWebSocket: Bool = false
  ) async throws {
    let before = ready.load(ordering: .relaxed)
    for start in stride(from: 0, to: credentials.count, by: 50) {
      let some = Array(credentials[start..<min(start + 50, credentials.count)])
      try await loop.perform { [self] in
        for device in some { add(device, port, isWebSocket) }
      }
      try await wait { [self] in ready.load(ordering: .relaxed) >= before + start + some.count }
    }
  }

  private func add(_ device: Device.Credentials, _ port: UInt16, _ isWebSocket: Bool) {
    let stream = LeanStream(
      identity: device.deviceID, password: device.deviceSecret,
      server: server(port, isWebSocket: isWebSocket), scratch: scratch, on: loop)
    stream.ready = { [self] _ in ready.wrappingAdd(1, ordering: .relaxed) }
    stream.failed = { [self] why in trouble.withLock { $0 = $0 ?? "a device: \(why)" } }
    var output = ByteWriter(capacity: 256)
    stream.received = { [self] stream, json in
      guard let id = Lean.messageID(json) else { return }
      delivered.wrappingAdd(1, ordering: .relaxed)
      output.removeAll()
      output.append("<message><gcm xmlns=\"google:mobile:data\">{\"message_type\":\"ack\",\"message_id\":\"")
      output.append(id)
      output.append("\"}</gcm></message>")
      output.bytes.withUnsafeBytes { stream.send($0) }
    }
    devices.append(stream)
    tokens.append(Array(device.token.utf8))
    stream.connect()
  }

  /// Cuts off all devices but the first; they get no more messages.
  func closeDevices(keeping count: Int) async throws {
    try await loop.perform { [self] in
      for stream in devices.dropFirst(count) { stream.close() }
      devices = Array(devices.prefix(count))
      tokens = Array(tokens.prefix(count))
    }
  }

  func connectSenders(_ count: Int, identity: String, key: String, port: UInt16) async throws {
    let before = ready.load(ordering: .relaxed)
    try await loop.perform { [self] in
      shape += 1
      for number in 0..<count {
        let stream = LeanStream(
          identity: identity, password: key, server: server(port), scratch: scratch, on: loop)
        let sender = Sender(stream, number: number)
        stream.ready = { [self] _ in ready.wrappingAdd(1, ordering: .relaxed) }
        stream.failed = { [self] why in trouble.withLock { $0 = $0 ?? "a sender: \(why)" } }
        stream.received = { [self, unowned sender] _, json in answered(sender, json) }
        senders.append(sender)
        stream.connect()
      }
    }
    try await wait { [self] in ready.load(ordering: .relaxed) >= before + count }
  }

  private func answered(_ sender: Sender, _ json: UnsafeRawBufferPointer) {
    guard let id = Lean.messageID(json) else { return }
    var number = 0
    for byte in id.reversed().prefix(while: { $0 != UInt8(ascii: "-") }).reversed() {
      number = number * 10 + Int(byte) - 48
    }
    if let sent = sender.sentAt.removeValue(forKey: number) {
      latency.record(UInt64(max(0, loop.time.moment.ns - sent)))
    }
    if Lean.isAck(json) {
      acked.wrappingAdd(1, ordering: .relaxed)
    } else {
      nacked.wrappingAdd(1, ordering: .relaxed)
    }
    if sender.isSending { send(sender) }
  }

  /// About 600 bytes of JSON.
  private static let payload = Array(
    ("\",\"priority\":\"high\",\"data\":{\"title\":\"Une journée à Séoul\",\"text\":\""
      + String(repeating: "the quick brown fox jumps over the lazy dog; ", count: 8)
      + "\",\"room\":\"4711\",\"kind\":\"chat\"}}</gcm></message>").utf8)
  private var message = ByteWriter(capacity: 2_048)

  private func send(_ sender: Sender) {
    let number = sender.next
    sender.next += 1
    message.removeAll()
    message.append("<message><gcm xmlns=\"google:mobile:data\">{\"message_id\":\"b")
    message.append(decimal: Int64(shape))
    message.append("-")
    message.append(decimal: Int64(sender.number))
    message.append("-")
    message.append(decimal: Int64(number))
    message.append("\",\"to\":\"")
    message.append(tokens[(sender.number &* 7919 &+ number) % min(tokens.count, targets)])
    message.append(Self.payload)
    sender.sentAt[number] = loop.time.moment.ns
    message.bytes.withUnsafeBytes { sender.stream.send($0) }
  }

  /// Fills every sender's window; each answer then sends the next message.
  ///
  /// - Parameter targets: Of the devices only the first ones get messages.
  func start(window: Int, targets: Int = .max) async throws {
    try await loop.perform { [self] in
      self.targets = targets
      for sender in senders {
        sender.isSending = true
        for _ in 0..<window { send(sender) }
      }
    }
  }

  func resetLatency() async throws {
    try await loop.perform { [self] in latency = Histogram() }
  }

  /// Sends one message to a topic on a stream of its own.
  ///
  /// - Returns: From the write of the message to its ack.
  func sendToTopic(
    _ topic: String, id: String, payloadBytes: Int, identity: String, key: String, port: UInt16
  ) async throws -> Duration {
    let acked = Mutex<(sent: Int64, taken: Duration?)>((0, nil))
    let stream = try await loop.perform { [self] in
      let stream = LeanStream(
        identity: identity, password: key, server: server(port), scratch: scratch, on: loop)
      stream.failed = { [self] why in trouble.withLock { $0 = $0 ?? "the topic's sender: \(why)" } }
      stream.received = { [self] _, json in
        guard Lean.isAck(json) else { return stream.failed(String(decoding: json, as: UTF8.self)) }
        acked.withLock { $0.taken = .nanoseconds(loop.time.moment.ns - $0.sent) }
      }
      stream.ready = { [self] stream in
        let text =
          "<message><gcm xmlns=\"google:mobile:data\">{\"message_id\":\"\(id)\",\"to\":\"/topics/\(topic)\",\"data\":{\"t\":\""
          + String(repeating: "x", count: payloadBytes) + "\"}}</gcm></message>"
        acked.withLock { $0.sent = loop.time.moment.ns }
        Array(text.utf8).withUnsafeBytes { stream.send($0) }
      }
      stream.connect()
      return Handle(stream)
    }
    try await wait { acked.withLock { $0.taken != nil } }
    try await loop.perform { stream.value.close() }
    return acked.withLock { $0.taken } ?? .zero
  }

  /// A stream on its way back to its loop.
  ///
  /// `@unchecked Sendable`: what it holds is touched on the loop alone.
  private struct Handle: @unchecked Sendable {
    let value: LeanStream
    init(_ value: LeanStream) { self.value = value }
  }

  func stopSending() async throws {
    try await loop.perform { [self] in
      for sender in senders { sender.isSending = false }
    }
    try await wait { [self] in senders.allSatisfy(\.sentAt.isEmpty) }
  }

  func closeSenders() async throws {
    try await loop.perform { [self] in
      for sender in senders { sender.stream.close() }
      senders = []
    }
  }

  func stop() async {
    try? await loop.perform { [self] in
      for stream in devices { stream.close() }
      for sender in senders { sender.stream.close() }
    }
    loop.stop()
  }

  private func wait(_ condition: @escaping @Sendable () -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      if try await loop.perform(condition) { return }
      if let trouble = trouble.withLock({ $0 }) { throw BenchFault(trouble) }
      guard ContinuousClock.now < deadline else { throw BenchFault("the server does not keep up") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}
