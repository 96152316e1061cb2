import Bytes
import ConnectionServer
import Connections
import DeliveryCore
import DeviceRuntime
import PushModel
import PushXMPP
import Seams
import Stores
import XMPPCore

/// A device: the real device runtime on a virtual loop, and an app that handles what it is shown.
final class SimDevice: DeviceEngineDelegate {
  let number: Int
  let deviceID: String
  let secret: String
  let loop: VirtualLoop
  private unowned let run: Simulation
  private var engine: DeviceEngine?
  private var chance: SeededChance
  private(set) var isConnected = false
  private(set) var connectedAt: Int64 = 0
  private var tags: [UInt64: SentUpstream] = [:]
  private var lastTag: UInt64 = 0
  private(set) var deletedTotal: Int64 = 0
  /// Distinct for every engine: what one process of the app knew is gone with it.
  private(set) var incarnation = 0
  private(set) var deletedCount = 0
  private var isClosing = false

  init(number: Int, deviceID: String, secret: String, loop: VirtualLoop, run: Simulation) {
    self.number = number
    self.deviceID = deviceID
    self.secret = secret
    self.loop = loop
    self.run = run
    chance = run.world.chance("device", number)
  }

  var upstreamCount: Int { engine?.upstreamCount ?? 0 }
  var repeatCount: Int { engine?.repeatCount ?? 0 }

  static func endpoint(_ identity: String, _ password: String, _ swarm: Swarm) -> ClientEndpoint {
    ClientEndpoint(
      host: "server", port: 5235, context: nil,
      login: ClientLogin(
        host: "fcm-xmpp.googleapis.com",
        credentials: PlainCredentials(authcid: identity, password: password)),
      connectTimeout: swarm.connectTimeout)
  }

  private func makeEngine(remembering ids: Int, ackRule: DeviceAckRule = .whenHandled) -> DeviceEngine {
    let endpoint = Self.endpoint(deviceID, secret, run.swarm)
    let line = ClientLine(on: loop, settings: run.swarm.device, seed: chance.next()) {
      endpoint.makeConnection($0, $1)
    }
    return DeviceEngine(line: line, tag: number, ackRule: ackRule, rememberedMax: ids)
  }

  /// Connects, and keeps connected.
  func start() {
    loop.input { [self] in
      guard engine == nil else { return }
      begin()
    }
  }

  private func begin() {
    incarnation = run.nextIncarnation()
    let made = makeEngine(remembering: run.canary == .deviceForgets ? 1 : 1_000)
    made.delegate = self
    engine = made
    made.start()
  }

  /// Takes the device's place for a moment, as a copy of its app data would, and reads without acking.
  func haunt(for duration: Duration) {
    loop.input { [self] in
      let ghost = makeEngine(remembering: 10, ackRule: .never)
      ghost.start()
      run.world.after(duration) { [self] in loop.input { ghost.abort() } }
    }
  }

  func close() {
    isClosing = true
    loop.input { [self] in engine?.close(within: .seconds(20)) }
  }

  func abort() {
    isClosing = true
    loop.input { [self] in engine?.abort() }
  }

  var isClosed: Bool { engine?.isClosed ?? true }

  // MARK: Upstream

  func send(_ message: SentUpstream, token: String, padding: Int) {
    loop.input { [self] in
      var json = ByteWriter()
      var upstream = UpstreamMessage(
        to: SenderID(run.swarm.server.senderID), messageID: message.id, token: token,
        timeToLive: message.ttl, data: ["id": message.id])
      if padding > 0 { upstream.data["p"] = String(repeating: "u", count: padding) }
      upstream.write(to: &json)
      var stanza = ByteWriter()
      json.bytes.withUnsafeBytes { PushStanzas().append($0, id: message.id, to: &stanza) }
      lastTag += 1
      let encoded = EncodedMessage(id: message.id, stanza: stanza.take())
      guard let engine, case .accepted = engine.submit(encoded, tag: lastTag) else {
        run.ledger.upstreamEnded(message, .refused("not taken"), attempts: 0)
        return
      }
      tags[lastTag] = message
    }
  }

  // MARK: From the runtime

  func received(_ message: DeviceDelivery.Message, key: Hash128, by device: DeviceEngine) {
    let success = !(run.swarm.features.contains(.failingHandlers) && run.isUnsafe && chance.percent(8))
    run.ledger.shown(message, on: self, success: success)
    if run.swarm.features.contains(.slowHandlers), chance.percent(40) {
      run.world.after(chance.time(.milliseconds(1), .seconds(8))) { [self] in
        loop.input { device.handled(key, success: success) }
      }
    } else {
      device.handled(key, success: success)
    }
  }

  func deleted(from: String, category: String, total: Int64, by device: DeviceEngine) {
    deletedTotal += total
    deletedCount += 1
    run.world.note("deleted", UInt64(number), UInt64(total))
  }

  func finished(_ messages: [FinishedMessage], of device: DeviceEngine) {
    for message in messages {
      guard let sent = tags.removeValue(forKey: message.tag) else { continue }
      run.ledger.upstreamEnded(sent, SentMessage.End(message.outcome.end), attempts: message.outcome.attempts)
    }
  }

  func changed(_ status: SenderMachine.Status, of device: DeviceEngine) {
    run.world.say("device", "\(number) \(status)")
    // Another login took its place, and the runtime leaves it at that: the user opens the app again.
    if case .closed = status, !isClosing, device === engine {
      run.world.after(chance.time(.seconds(1), .seconds(20))) { [self] in
        loop.input { [self] in if engine === device, !isClosing { begin() } }
      }
    }
    if case .connected = status {
      isConnected = true
      connectedAt = run.world.now
    } else {
      isConnected = false
    }
  }
}

extension SentMessage.End {
  init(_ end: SendOutcome.End) {
    switch end {
    case .acked: self = .acked
    case .nacked(let nack): self = .refused(nack.code)
    case .stanzaRefused(let text): self = .refused("stanza: \(text)")
    case .ackOverdue: self = .unknown("overdue")
    case .deadline(let nack): self = .unknown("deadline \(nack?.code ?? "")")
    case .streamLost: self = .unknown("stream lost")
    case .cancelled: self = .unknown("cancelled")
    case .closed: self = .unknown("closed")
    }
  }
}
