import Foundation
import JSONCore
import LoadGenerator

extension LoadScenario {
  /// Longest load.
  static let durationMax = Duration.seconds(86_400)

  /// Reads a scenario file: JSON5, every name checked, what is left out as in ``LoadScenario``.
  init(file path: String) throws(UsageFault) {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw UsageFault(message: "The scenario \(path) cannot be read.")
    }
    let name = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
    try self.init(json5: data, name: name)
  }

  init(json5 data: Data, name fallback: String) throws(UsageFault) {
    self.init()
    var fields = try ScenarioFields(try ScenarioValue(json5: data, name: fallback), at: "")
    name = try fields.text("name", fallback)
    duration = try fields.duration("duration", duration, most: Self.durationMax)
    settle = try fields.duration("settle", settle, most: .seconds(3_600))
    seed = UInt64(try fields.integer("seed", 1, 0...(1 << 53)))
    devices = try Devices(try fields.object("devices"))
    var senders = try fields.object("senders")
    self.senders.count = try senders.integer("count", 1, 1...1_000)
    self.senders.window = try senders.integer("window", 100, 1...10_000)
    self.senders.answerWithin = try senders.duration(
      "answer_within", self.senders.answerWithin, most: .seconds(3_600))
    try senders.end()
    if let value = fields.take("arrivals") { arrivals = try Arrivals(value, at: "arrivals") }
    var messages = try fields.object("messages")
    if let value = messages.take("bytes") { sizes = try PayloadSizes(value, at: "messages.bytes") }
    topics = try Topics(try messages.object("topics"))
    try messages.end()
    upstreamRate = try fields.number("upstream", 0, 0...1_000_000)
    for (index, value) in try fields.list("faults").enumerated() {
      faults.append(try Fault(value, at: "faults[\(index)]"))
    }
    expect = try Expectations(try fields.object("expect"))
    try fields.end()
    try check()
  }

  /// What single fields cannot say.
  func check() throws(UsageFault) {
    let special = devices.slowAcks + devices.slowReaders + devices.halfOpen
    guard special <= devices.count else {
      throw UsageFault(
        message: "devices: \(special) are to be slow or half-open, but devices.count is \(devices.count).")
    }
    guard topics.count == 0 || topics.subscribers <= devices.count else {
      throw UsageFault(
        message:
          "messages.topics.subscribers is \(topics.subscribers), but devices.count is \(devices.count).")
    }
  }

  /// What needs the administration of the server.
  var needsAdministration: Bool { !faults.isEmpty }

  /// Streams it opens.
  var streamCount: Int { devices.count + senders.count }
}

extension LoadScenario.Devices {
  init(_ given: ScenarioFields) throws(UsageFault) {
    self.init()
    var fields = given
    count = try fields.integer("count", count, 1...1_000_000)
    connectRate = try fields.number("connect_rate", connectRate, 1...100_000)
    connectingMax = try fields.integer("connecting_max", connectingMax, 1...1_000_000)
    churn = try fields.number("churn", churn, 0...100_000)
    away = try fields.duration("away", away, most: .seconds(3_600))
    halfOpen = try fields.integer("half_open", 0, 0...1_000_000)
    var acks = try fields.object("slow_acks")
    slowAcks = try acks.integer("count", 0, 0...1_000_000)
    slowAckDelay = try acks.duration("delay", slowAckDelay, most: .seconds(600))
    try acks.end()
    var readers = try fields.object("slow_readers")
    slowReaders = try readers.integer("count", 0, 0...1_000_000)
    slowReaderBytes = try readers.integer("bytes_per_second", slowReaderBytes, 1...1_000_000_000)
    try readers.end()
    for (index, value) in try fields.list("waves").enumerated() {
      var wave = try ScenarioFields(value, at: "devices.waves[\(index)]")
      waves.append(
        LoadScenario.Wave(
          at: try wave.number("at", 0, 0...86_400), share: try wave.number("share", 1, 0...1)))
      try wave.end()
    }
    try fields.end()
  }
}

extension LoadScenario.Fault {
  static let kinds = ["nack", "drop_ack", "unavailable", "cut", "drain", "half_open", "delay"]

  /// A moment, and the members of an order as `POST /admin/v1/faults` takes it.
  init(_ value: ScenarioValue, at path: String) throws(UsageFault) {
    var fields = try ScenarioFields(value, at: path)
    let at = try fields.number("at", 0, 0...86_400)
    let kind = try fields.text("kind", "")
    guard Self.kinds.contains(kind) else {
      throw UsageFault(message: "\(path).kind must be one of \(Self.kinds.joined(separator: ", ")).")
    }
    var order: [JSONValue.Member] = [.init("kind", .string(kind))]
    for name in ["code", "project", "token", "retry_after"] {
      let text = try fields.text(name, "")
      if !text.isEmpty { order.append(.init(name, .string(text))) }
    }
    for (name, range) in [
      ("message", 1...1_000_000_000), ("count", 0...1_000_000_000), ("delay_ms", 1...600_000),
      ("status", 400...599),
    ] {
      let value = try fields.integer(name, -1, range)
      if value >= 0 { order.append(.init(name, .number(value))) }
    }
    guard kind != "delay" || order.contains(where: { $0.name == "delay_ms" }) else {
      throw UsageFault(message: "\(path).delay_ms is missing.")
    }
    try fields.end()
    self.init(at: at, kind: kind, order: JSONValue.object(order).text)
  }
}

extension LoadScenario.Topics {
  init(_ given: ScenarioFields) throws(UsageFault) {
    self.init()
    var fields = given
    count = try fields.integer("count", 0, 0...10_000)
    share = try fields.number("share", share, 0...1)
    subscribers = try fields.integer("subscribers", subscribers, 0...1_000_000)
    try fields.end()
  }
}

extension LoadScenario.Expectations {
  init(_ given: ScenarioFields) throws(UsageFault) {
    self.init()
    var fields = given
    func positive(_ duration: Duration) -> Duration? { duration > .zero ? duration : nil }
    ackP99 = positive(try fields.duration("ack_p99", .zero, most: .seconds(3_600)))
    deliveryP99 = positive(try fields.duration("delivery_p99", .zero, most: .seconds(3_600)))
    let nacks = try fields.integer("nacks", -1, 0...1_000_000_000)
    nacksMax = nacks < 0 ? nil : nacks
    let rate = try fields.number("per_second", 0, 0...10_000_000)
    perSecondMin = rate > 0 ? rate : nil
    try fields.end()
  }
}

extension Arrivals {
  private static let rates = 0.0...10_000_000.0

  /// `"closed"`, or an object with one member that names the process.
  init(_ value: ScenarioValue, at path: String) throws(UsageFault) {
    let wanted =
      "\"closed\", {constant: RATE}, {poisson: RATE}, {ramp: {from, to}} or {spike: {base, peak, at, for}}"
    if case .text("closed") = value {
      self = .closed
      return
    }
    guard case .object = value else {
      throw UsageFault(message: "\(path) must be \(wanted), not \(value.kind).")
    }
    var fields = try ScenarioFields(value, at: path)
    guard let kind = fields.names.first, fields.names.count == 1 else {
      throw UsageFault(message: "\(path) must be one of \(wanted).")
    }
    switch kind {
    case "constant": self = .constant(try fields.number(kind, 0, Self.rates))
    case "poisson": self = .poisson(try fields.number(kind, 0, Self.rates))
    case "ramp":
      var ramp = try fields.object(kind)
      self = .ramp(
        from: try ramp.number("from", 0, Self.rates), to: try ramp.number("to", 0, Self.rates))
      try ramp.end()
    case "spike":
      var spike = try fields.object(kind)
      self = .spike(
        base: try spike.number("base", 0, Self.rates), peak: try spike.number("peak", 0, Self.rates),
        at: try spike.number("at", 0, 0...86_400), length: try spike.number("for", 1, 0...86_400))
      try spike.end()
    default:
      throw UsageFault(message: "\(path).\(kind) has no meaning: \(path) must be one of \(wanted).")
    }
  }
}

extension PayloadSizes {
  private static let range = Self.bytesMin...Self.bytesMax

  /// A number, `{from, to}`, or a list of `{bytes, weight}`.
  init(_ value: ScenarioValue, at path: String) throws(UsageFault) {
    switch value {
    case .number(let number):
      guard let bytes = Int(exactly: number), Self.range.contains(bytes) else {
        throw Self.fault(path, value)
      }
      self = .fixed(bytes)
    case .object:
      var fields = try ScenarioFields(value, at: path)
      let from = try fields.integer("from", Self.bytesMin, Self.range)
      let to = try fields.integer("to", Self.bytesMax, Self.range)
      try fields.end()
      guard from <= to else { throw UsageFault(message: "\(path).from is larger than \(path).to.") }
      self = .between(from, to)
    case .list(let list) where !list.isEmpty:
      var shares: [Share] = []
      for (index, value) in list.enumerated() {
        var fields = try ScenarioFields(value, at: "\(path)[\(index)]")
        shares.append(
          Share(
            bytes: try fields.integer("bytes", 600, Self.range),
            weight: try fields.number("weight", 1, 0...1_000_000)))
        try fields.end()
      }
      guard shares.contains(where: { $0.weight > 0 }) else {
        throw UsageFault(message: "\(path) needs a weight above 0.")
      }
      self = .mixed(shares)
    case .null, .flag, .text, .list: throw Self.fault(path, value)
    }
  }

  private static func fault(_ path: String, _ value: ScenarioValue) -> UsageFault {
    UsageFault(
      message: "\(path) must be a number of bytes from \(bytesMin) to \(bytesMax), {from, to}, "
        + "or a list of {bytes, weight}, not \(value.kind).")
  }
}
