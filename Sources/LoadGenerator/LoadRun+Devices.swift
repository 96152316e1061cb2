import Bytes
import Connections
import EventLoops
import Seams
import Telemetry

extension LoadRun {
  // MARK: Connections

  /// Begins the connections that the rate allows.
  func connectDue(_ passed: Duration) {
    guard connectNext < connectQueue.count else {
      connectBudget = 0
      return
    }
    let rate = scenario.devices.connectRate
    connectBudget = min(connectBudget + rate * Double(passed.ns) / 1e9, max(1, rate / 10))
    while connectBudget >= 1, connectNext < connectQueue.count, connecting < scenario.devices.connectingMax {
      connectBudget -= 1
      devices[connectQueue[connectNext]].connect()
      connectNext += 1
    }
    if connectNext == connectQueue.count {
      connectQueue.removeAll(keepingCapacity: true)
      connectNext = 0
    }
  }

  func deviceUp(_ device: LoadDevice, after time: Duration) {
    second.connects += 1
    connectTimes.record(time)
    lastProgress = clock
    lastEvent = clock
  }

  func deviceLost(_ device: LoadDevice, _ why: String, failures: Int) {
    note(loss: why)
    connectLater(device, within: .milliseconds(min(30_000, 250 << min(failures, 7))))
  }

  /// Cuts a device off on purpose; it comes back.
  func cut(_ device: LoadDevice) {
    device.cut()
    second.cuts += 1
    connectLater(device, within: scenario.devices.away)
  }

  /// Comes back at any time within `most`: never all in step.
  private func connectLater(_ device: LoadDevice, within most: Duration) {
    let wait = Int64.random(in: 0...max(0, most.ns), using: &chance)
    let index = device.index
    loop.after(.nanoseconds(wait)) { [weak self] in self?.connectQueue.append(index) }
  }

  func cutSomeDevice() {
    for _ in 0..<16 {
      guard let device = devices.randomElement(using: &chance) else { return }
      if device.isUp, device.habit != .halfOpen { return cut(device) }
    }
  }

  func senderUp() { lastProgress = clock }

  func senderLost(_ sender: LoadSender, _ why: String, failures: Int) {
    note(loss: "a sender: " + why)
    if phase == .connecting, why.hasPrefix("login refused") {
      return fail(LoadFault("the app server's \(why)", wasRefused: true))
    }
    if phase == .connecting, failures >= 3 { return fail(LoadFault("no sender can connect: \(why)")) }
    let most = Int64(min(5_000, 100 << min(failures, 6))) * 1_000_000
    loop.after(.nanoseconds(Int64.random(in: 0...most, using: &chance))) { [weak self, weak sender] in
      if self?.phase != .done { sender?.connect() }
    }
  }

  private func note(loss why: String) {
    second.losses += 1
    lastSurprise = why
    // Texts come from the other side: no more kinds than a person would read.
    if losses[why] != nil || losses.count < 32 { losses[why, default: 0] += 1 }
  }

  // MARK: Messages to devices

  /// A device got a message of a load test.
  func shown(by device: LoadDevice, _ mark: UnsafeRawBufferPointer, id: UInt64) {
    guard mark.starts(with: runMark),
      let (sender, number) = Lean.pair(mark[runMark.count...], UInt8(ascii: ".")),
      senders.indices.contains(sender)
    else { return }
    if scenario.isCanary, device.index == 0 { return }
    lastEvent = clock
    switch plan.target(sender: sender, number: number) {
    case .device(let meant) where meant == device.index: break
    case .topic(let topic) where plan.isSubscriber(device.index, of: topic):
      if device.hasShown(id) { return noteRepeat() }
    case .device, .topic:
      strayed += 1
      return
    }
    switch senders[sender].ledger.deliver(number) {
    case .expected(let intended):
      device.remember(id)
      second.delivered += 1
      if let intended { deliveryNow.record(UInt64(max(0, clock.ns - intended))) }
    case .surplus:
      if device.hasShown(id) { noteRepeat() } else { doubled += 1 }
    }
  }

  private func noteRepeat() {
    repeated += 1
    second.repeated += 1
  }

  // MARK: Messages of senders

  func deliveries(of number: Int, by sender: Int) -> Int {
    if case .topic = plan.target(sender: sender, number: number) { return plan.subscriberCount }
    return 1
  }

  /// Puts a message into ``output``.
  func write(_ number: Int, of sender: Int) {
    output.removeAll()
    output.append("<message><gcm xmlns=\"google:mobile:data\">{\"message_id\":\"")
    output.append(runMark)
    output.append("-")
    output.append(decimal: Int64(sender))
    output.append("-")
    output.append(decimal: Int64(number))
    switch plan.target(sender: sender, number: number) {
    case .device(let index):
      output.append("\",\"to\":\"")
      output.append(tokens[index])
    case .topic(let topic):
      output.append("\",\"to\":\"/topics/")
      output.append(topicName(topic))
    }
    output.append("\",\"priority\":\"high\",\"data\":{\"weir_load\":\"")
    let begin = output.bytes.count
    output.append(runMark)
    output.append(".")
    output.append(decimal: Int64(sender))
    output.append(".")
    output.append(decimal: Int64(number))
    // Names are 9 and 4 bytes long.
    let used = output.bytes.count - begin + 13
    output.append("\",\"text\":\"")
    let rest = plan.bytes(sender: sender, number: number) - used
    Self.text.withUnsafeBytes {
      output.append(UnsafeRawBufferPointer(rebasing: $0[..<min($0.count, max(0, rest))]))
    }
    output.append("\"}}</gcm></message>")
  }

  package func topicName(_ topic: Int) -> String { "weir-load-\(topic)" }

  private static let text: [UInt8] = {
    let words = Array("the quick brown fox jumps over the lazy dog and comes back at five; ".utf8)
    return (0..<PayloadSizes.bytesMax).map { words[$0 % words.count] }
  }()

  /// The number in a message id of this run and sender.
  func messageNumber(_ id: UnsafeRawBufferPointer, of sender: Int) -> Int? {
    guard id.starts(with: runMark),
      let (found, number) = Lean.pair(id[runMark.count...], UInt8(ascii: "-")), found == sender
    else { return nil }
    return number
  }

  func answered(code: String?, intended: Int64?) {
    lastEvent = clock
    if let code {
      second.nacked += 1
      if nacks[code] != nil || nacks.count < 64 { nacks[code, default: 0] += 1 }
    } else {
      second.acked += 1
      if let intended { ackNow.record(UInt64(max(0, clock.ns - intended))) }
    }
  }

  // MARK: Upstream

  func sendUpstream(_ now: Moment) {
    for _ in 0..<16 {
      guard let device = devices.randomElement(using: &chance) else { return }
      guard device.isUp, device.habit != .halfOpen, device.upstream.count < 20 else { continue }
      let number = upstream.take(intended: now.ns)
      upstream.write(number)
      second.upstreamSent += 1
      return device.send(upstream: number)
    }
  }

  /// The number in the id of an upstream message of this run.
  func upstreamNumber(_ id: UnsafeRawBufferPointer) -> Int? {
    guard id.count > 2, id[0] == UInt8(ascii: "u"), id[1] == UInt8(ascii: "-") else { return nil }
    let rest = id[2...]
    guard rest.starts(with: runMark), rest.count > runMark.count + 1 else { return nil }
    return Lean.number(rest.dropFirst(runMark.count + 1))
  }

  func upstreamAnswered(_ number: Int, isAck: Bool) {
    lastEvent = clock
    _ = upstream.answer(number, isAck: isAck)
  }

  func upstreamReceived(_ id: String) {
    guard let number = Array(id.utf8).withUnsafeBytes({ upstreamNumber($0) }) else { return }
    lastEvent = clock
    switch upstream.deliver(number) {
    case .expected: second.upstreamReceived += 1
    case .surplus: upstreamRepeated += 1
    }
  }
}
