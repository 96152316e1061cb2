import Bytes
import ConnectionServer
import Connections
import DeliveryCore
import PushModel
import PushXMPP
import Seams
import Stores
import StreamClient

/// An app server: the real stream client's engine on a virtual loop, and a handler of what it is pushed.
final class SimAppServer: SenderEngineDelegate {
  let number: Int
  let loop: VirtualLoop
  private unowned let run: Simulation
  private var engine: SenderEngine?
  /// Distinct for every engine: what one process knew is gone with it.
  private(set) var incarnation = 0
  private var chance: SeededChance
  private var tags: [UInt64: SentMessage] = [:]
  private var lastTag: UInt64 = 0
  private(set) var isConnected = false

  init(number: Int, loop: VirtualLoop, run: Simulation) {
    self.number = number
    self.loop = loop
    self.run = run
    chance = run.world.chance("app server", number)
  }

  var messageCount: Int { engine?.messageCount ?? 0 }
  var isClosed: Bool { engine?.isClosed ?? true }

  func start() {
    loop.input { [self] in makeEngine() }
  }

  private func makeEngine() {
    let swarm = run.swarm
    let endpoint = SimDevice.endpoint(
      "\(swarm.server.senderID)@fcm.googleapis.com", swarm.server.serverKey, swarm)
    let line = ClientLine(on: loop, settings: swarm.sender, seed: chance.next()) {
      endpoint.makeConnection($0, $1)
    }
    incarnation = run.nextIncarnation()
    let made = SenderEngine(line: line)
    made.delegate = self
    engine = made
    made.start()
  }

  /// The process is killed and another starts: messages without an answer have an unknown fate.
  func restart() {
    loop.input { [self] in
      guard let old = engine else { return }
      old.abort()
      old.delegate = nil
      for tag in tags.keys.sorted() {
        if let sent = tags[tag] { run.ledger.ended(sent, .unknown("restarted"), attempts: 1) }
      }
      tags = [:]
      makeEngine()
    }
  }

  func close() {
    loop.input { [self] in engine?.close(within: .seconds(20)) }
  }

  /// Hands a message to the library.
  func send(_ sent: SentMessage, _ json: [UInt8]) {
    loop.input { [self] in
      var stanza = ByteWriter(capacity: json.count + 256)
      json.withUnsafeBytes { PushStanzas().append($0, id: sent.id, to: &stanza) }
      lastTag += 1
      guard let engine,
        case .accepted = engine.submit(EncodedMessage(id: sent.id, stanza: stanza.take()), tag: lastTag)
      else { return run.ledger.ended(sent, .refused("not taken"), attempts: 0) }
      tags[lastTag] = sent
    }
  }

  // MARK: From the library

  func finished(_ messages: [FinishedMessage], of engine: SenderEngine) {
    for message in messages {
      guard let sent = tags.removeValue(forKey: message.tag) else { continue }
      run.ledger.ended(sent, SentMessage.End(message.outcome.end), attempts: message.outcome.attempts)
    }
  }

  func received(_ inbound: [InboundUpstream], by engine: SenderEngine) {
    for item in inbound {
      let success = !(run.swarm.features.contains(.failingHandlers) && run.isUnsafe && chance.percent(5))
      switch item.content {
      case .message(let message):
        run.ledger.upstreamShown(message, by: incarnation, success: success)
      case .receipt(let receipt): run.ledger.receipt(receipt, by: incarnation, success: success)
      }
      if run.swarm.features.contains(.slowHandlers), chance.percent(30) {
        run.world.after(chance.time(.milliseconds(1), .seconds(5))) { [self] in
          loop.input { engine.handled(item.key, success: success) }
        }
      } else {
        engine.handled(item.key, success: success)
      }
    }
  }

  func changed(_ status: SenderMachine.Status, of engine: SenderEngine) {
    run.world.say("app server", "\(number) \(status)")
    if case .connected = status { isConnected = true } else { isConnected = false }
  }
}
