import Connections
import DeliveryCore
import EventLoops
import Synchronization
import XMLCore

@testable import StreamClient

/// A server without sockets: the connections it makes answer on the client's own loop.
final class LoopbackServer: Sendable {
  enum Behaviour: Sendable {
    case ack
    case nack(String)
    case silent
    case draining
    case drop
  }

  struct State {
    /// What is done with a message, by id and how often it came before; ack when there is none.
    var behave: @Sendable (_ id: String, _ earlier: Int) -> Behaviour = { _, _ in .ack }
    var refusesLogin = false
    var unreachableTimes = 0
    var seen: [String: Int] = [:]
    var opened = 0
    /// Stanzas that are no downstream messages: acks of the client.
    var others: [String] = []
    var pendingMost = 0
  }

  let state = Mutex(State())
  /// What it grants to those who ask for more than the protocol's window.
  let window: Int?

  init(window: Int? = nil) { self.window = window }

  func behave(_ behave: @escaping @Sendable (_ id: String, _ earlier: Int) -> Behaviour) {
    state.withLock { $0.behave = behave }
  }

  var seenCount: Int { state.withLock { $0.seen.count } }

  /// For `StreamClient.init(_:connector:)`.
  var connector: @Sendable (StreamNumber, ClientLine) -> any ClientConnection {
    { LoopbackConnection(self, stream: $0, owner: $1) }
  }
}

final class LoopbackConnection: ClientConnection {
  private let server: LoopbackServer
  private let stream: StreamNumber
  private let owner: ClientLine
  private var inbox: [[UInt8]] = []
  private var isOpen = false
  private var isDead = false
  private var pending = 0

  init(_ server: LoopbackServer, stream: StreamNumber, owner: ClientLine) {
    self.server = server
    self.stream = stream
    self.owner = owner
  }

  func connect() {
    let end: StreamClosure? = server.state.withLock { state in
      if state.unreachableTimes > 0 {
        state.unreachableTimes -= 1
        return StreamClosure(.connectFailed, "nobody there")
      }
      if state.refusesLogin { return StreamClosure(.loginRefused, "not-authorized") }
      state.opened += 1
      return nil
    }
    owner.loop.later { [self] in
      if let end { return die(end) }
      guard !isDead else { return }
      isOpen = true
      owner.opened(stream, window: server.window)
    }
  }

  func write(_ stanza: UnsafeRawBufferPointer) {
    inbox.append(Array(stanza))
    // The next round, as a reply from the network would come.
    if inbox.count == 1 { owner.loop.submit(Handover({ [self] in work() }).call) }
  }

  func end() { owner.loop.later { [self] in die(StreamClosure(.ended)) } }
  func abort() { isDead = true }

  func push(_ json: String) {
    guard isOpen, !isDead else { return }
    let bytes = Array(json.utf8)
    bytes.withUnsafeBytes { owner.received($0, id: nil, kind: .none, on: stream) }
  }

  private func die(_ end: StreamClosure) {
    guard !isDead else { return }
    isDead = true
    owner.closed(stream, end)
  }

  private func work() {
    let batch = inbox
    inbox = []
    pending += batch.count
    server.state.withLock { $0.pendingMost = max($0.pendingMost, pending) }
    for stanza in batch {
      guard !isDead else { return }
      answer(stanza)
    }
  }

  private func answer(_ stanza: [UInt8]) {
    let text = String(decoding: stanza, as: UTF8.self)
    guard text.hasPrefix("<message id=\"") else {
      pending -= 1
      server.state.withLock { $0.others.append(text) }
      return
    }
    let id = String(text.dropFirst(13).prefix { $0 != "\"" })
    let behaviour = server.state.withLock { state in
      let earlier = state.seen[id, default: 0]
      state.seen[id] = earlier + 1
      return state.behave(id, earlier)
    }
    switch behaviour {
    case .ack:
      pending -= 1
      push("{\"from\":\"t\",\"message_id\":\"\(id)\",\"message_type\":\"ack\"}")
    case .nack(let code):
      pending -= 1
      push(
        "{\"from\":\"t\",\"message_id\":\"\(id)\",\"message_type\":\"nack\",\"error\":\"\(code)\",\"error_description\":\"why\"}"
      )
    case .silent: break
    case .draining:
      push("{\"message_type\":\"control\",\"control_type\":\"CONNECTION_DRAINING\"}")
      owner.loop.later { [self] in die(StreamClosure(.peerEnded)) }
    case .drop: die(StreamClosure(.lost, "reset"))
    }
  }
}

extension Handover where Value == () -> Void {
  /// The closure, to be called once on the loop it was made on.
  var call: @Sendable () -> Void { { value() } }
}
