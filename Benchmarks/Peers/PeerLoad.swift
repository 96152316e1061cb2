import EventLoops
import Foundation
import LoadGenerator
import Seams
import Synchronization
import Telemetry

/// Senders and devices of one server, on one loop: the same shape for every protocol.
///
/// `@unchecked Sendable`: touched on its loop's thread; what others read is atomic.
final class PeerLoad: @unchecked Sendable {
  typealias Make = @Sendable (PeerWire.Role, PeerAddress, LeanStream.Scratch, EventLoop) -> PeerWire

  let loop: EventLoop
  private let make: Make
  private let address: PeerAddress
  private let scratch = LeanStream.Scratch()
  private let deviceCount: Int
  private var devices: [PeerWire] = []
  private var senders: [PeerWire] = []
  private var isSending = false
  /// Messages that may still be sent; nil without a bound.
  private var left: Int?
  private var next: [Int] = []
  private var sentAt: [Int: Int64] = [:]
  private(set) var latency = Histogram()
  /// One byte a message: 1 acked, and 2 more for each delivery.
  private var marks: [[UInt8]] = []
  private var keepsMarks = false
  private let ready = Atomic<Int>(0)
  private let trouble = Mutex<String?>(nil)
  private let ignoresTrouble = Atomic<Bool>(false)

  let acked = Atomic<Int>(0)
  let delivered = Atomic<Int>(0)

  /// Numbers of one sender, and of one of its turns: no number comes twice in a run.
  private static let perSender = 100_000_000
  private static let perTurn = 10_000_000
  private var turn = -1

  init(_ address: PeerAddress, devices: Int, make: @escaping Make) throws {
    self.address = address
    self.make = make
    deviceCount = devices
    loop = EventLoop(name: "peers")
    try loop.start()
  }

  // MARK: Streams

  /// Connects devices, 50 at a time.
  func connectDevices() async throws {
    let before = ready.load(ordering: .relaxed)
    var begun = 0
    while begun < deviceCount {
      let from = begun
      let to = min(deviceCount, ready.load(ordering: .relaxed) - before + 50)
      if to > from {
        try await loop.perform { [self] in
          for index in from..<to { devices.append(open(.device(index))) }
        }
        begun = to
      }
      try check()
      try await Task.sleep(for: .milliseconds(2))
    }
    try await wait(for: "devices to connect") { [self] in
      ready.load(ordering: .relaxed) >= before + deviceCount
    }
  }

  func connectSenders(_ count: Int) async throws {
    let before = ready.load(ordering: .relaxed)
    try await loop.perform { [self] in
      senders = (0..<count).map { open(.sender($0)) }
      turn += 1
      next = Array(repeating: turn * Self.perTurn, count: count)
      marks = Array(repeating: [], count: count)
    }
    try await wait(for: "senders to connect") { [self] in ready.load(ordering: .relaxed) >= before + count }
  }

  private func open(_ role: PeerWire.Role) -> PeerWire {
    let wire = make(role, address, scratch, loop)
    wire.ready = { [unowned self] in ready.wrappingAdd(1, ordering: .relaxed) }
    wire.failed = { [unowned self] why in
      guard !ignoresTrouble.load(ordering: .relaxed) else { return }
      trouble.withLock { $0 = $0 ?? "\(role): \(why)" }
    }
    switch role {
    case .sender(let sender): wire.acked = { [unowned self] in acked($0, of: sender) }
    case .device: wire.delivered = { [unowned self] in delivered($0) }
    }
    wire.connect()
    return wire
  }

  func closeDevices() async throws {
    ignoresTrouble.store(true, ordering: .relaxed)
    try await loop.perform { [self] in
      for device in devices { device.close() }
      devices = []
    }
    try await Task.sleep(for: .seconds(1))
    ignoresTrouble.store(false, ordering: .relaxed)
  }

  func closeSenders() async throws {
    ignoresTrouble.store(true, ordering: .relaxed)
    try await loop.perform { [self] in
      isSending = false
      for sender in senders { sender.close() }
      senders = []
    }
    try await Task.sleep(for: .milliseconds(200))
    ignoresTrouble.store(false, ordering: .relaxed)
  }

  /// From here on broken streams are what was asked for.
  func expectTrouble() { ignoresTrouble.store(true, ordering: .relaxed) }

  // MARK: Messages

  private func acked(_ number: Int, of sender: Int) {
    acked.wrappingAdd(1, ordering: .relaxed)
    if let sent = sentAt.removeValue(forKey: number) {
      latency.record(UInt64(max(0, loop.time.moment.ns - sent)))
    }
    if keepsMarks { mark(number) { $0 |= 1 } }
    if isSending { send(sender) }
  }

  private func delivered(_ number: Int) {
    delivered.wrappingAdd(1, ordering: .relaxed)
    if keepsMarks { mark(number) { $0 = $0 < 250 ? $0 + 2 : $0 } }
  }

  private func mark(_ number: Int, _ change: (inout UInt8) -> Void) {
    let sender = number / Self.perSender
    let place = number % Self.perSender - turn * Self.perTurn
    guard marks.indices.contains(sender), marks[sender].indices.contains(place) else { return }
    change(&marks[sender][place])
  }

  private func send(_ sender: Int) {
    if let left {
      guard left > 0 else { return }
      self.left = left - 1
    }
    let place = next[sender]
    next[sender] += 1
    let number = sender * Self.perSender + place
    if keepsMarks { marks[sender].append(0) }
    sentAt[number] = loop.time.moment.ns
    senders[sender].publish(number, to: (sender &* 7_919 &+ place) % deviceCount)
    // A server that acks counts is asked once a round.
    if !isFlushDue {
      isFlushDue = true
      loop.later { [unowned self] in
        isFlushDue = false
        for sender in senders { sender.flush() }
      }
    }
  }

  private var isFlushDue = false

  /// Fills all windows; each ack sends the next message.
  func start(window: Int, total: Int? = nil, keepsMarks: Bool = false) async throws {
    try await loop.perform { [self] in
      isSending = true
      left = total
      self.keepsMarks = keepsMarks
      for sender in senders.indices { for _ in 0..<window { send(sender) } }
    }
  }

  func resetLatency() async throws {
    try await loop.perform { [self] in latency = Histogram() }
  }

  func stopSending() async throws {
    try await loop.perform { [self] in isSending = false }
    try await wait(for: "the last acks") { [self] in sentAt.isEmpty }
  }

  /// Messages acked, acked and never delivered, and delivered more than once.
  func verdict() async throws -> (acked: Int, lost: Int, doubled: Int) {
    try await loop.perform { [self] in
      var (acked, lost, doubled) = (0, 0, 0)
      for byte in marks.joined() {
        if byte & 1 != 0 { acked += 1 }
        if byte == 1 { lost += 1 }
        if byte >= 4 { doubled += 1 }
      }
      return (acked, lost, doubled)
    }
  }

  func stop() {
    ignoresTrouble.store(true, ordering: .relaxed)
    loop.stop()
  }

  // MARK: Waiting

  private func check() throws {
    if let why = trouble.withLock({ $0 }) { throw PeerFault(why) }
  }

  func wait(for what: String, _ condition: @escaping @Sendable () -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(90)
    while true {
      if try await loop.perform(condition) { return }
      try check()
      guard ContinuousClock.now < deadline else { throw PeerFault("90 s were not enough for \(what)") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}

struct PeerFault: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
