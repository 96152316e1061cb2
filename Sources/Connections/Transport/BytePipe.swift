import Synchronization

/// A connection of bytes that another connection carries, as a stream of HTTP/2 carries a WebSocket.
///
/// It has two ends: the carrier, on the loop of the outer connection, and a ``PipeStream``, which may move to any loop.
/// What is on its way lies here, so that a move loses nothing and keeps the order. Each end is woken when there is
/// something new for it, once until it has looked.
///
/// Bounds: towards the stream, what the carrier lets its peer send before it is told that bytes were consumed; towards
/// the carrier, what the stream's owner lets be queued.
package final class BytePipe: Sendable {
  /// How the stream's owner ended.
  package enum Ending: Sendable {
    /// All is said; the peer may still speak.
    case finished
    /// Nothing is heard any more, and what was not sent is dropped.
    case closed
  }

  /// What the carrier finds.
  package struct News: Sendable {
    /// To be sent, in this order.
    package var bytes: [UInt8] = []
    /// Bytes that the owner has taken: so many more may come.
    package var consumed = 0
    /// Behind the bytes.
    package var ending: Ending?
  }

  private struct State {
    var inbound: [UInt8] = []
    var hasInboundEnded = false
    var isBroken = false
    var consumed = 0
    var outbound: [UInt8] = []
    /// Taken by the carrier and not sent by it.
    var carried = 0
    var ending: Ending?
    var wakeStream: (@Sendable () -> Void)?
    var isStreamWoken = false
    var isCarrierWoken = false
  }

  private let state = Mutex(State())
  private let consumedStep: Int
  private let wakeCarrier: @Sendable () -> Void

  /// - Parameters:
  ///   - consumedStep: The carrier is woken for so many consumed bytes, and not for fewer.
  ///   - wakeCarrier: Called on any thread; the carrier then calls ``takeNews()`` on its own.
  package init(consumedStep: Int, wakeCarrier: @escaping @Sendable () -> Void) {
    self.consumedStep = consumedStep
    self.wakeCarrier = wakeCarrier
  }

  // MARK: The carrier's end

  /// Hands bytes of the peer to the stream.
  package func deliver(_ bytes: [UInt8]) { change { $0.inbound += bytes } }

  /// The peer has said all.
  package func deliverEnd() { change { $0.hasInboundEnded = true } }

  /// The carrier is gone, or the peer has given up; what came before is still handed over.
  package func breakOff() { change { $0.isBroken = true } }

  package func takeNews() -> News {
    state.withLock { state in
      state.isCarrierWoken = false
      var news = News(bytes: state.outbound, consumed: state.consumed, ending: state.ending)
      if state.ending == .closed { news.bytes = [] }
      state.carried += news.bytes.count
      state.outbound = []
      state.consumed = 0
      state.ending = nil
      return news
    }
  }

  /// Says how many of the bytes that were taken are not sent yet.
  package func carrierHolds(_ count: Int) {
    let wake = state.withLock { state -> (@Sendable () -> Void)? in
      guard count < state.carried else { return nil }
      state.carried = count
      return count == 0 ? Self.wakeStream(&state) : nil
    }
    wake?()
  }

  private func change(_ change: (inout State) -> Void) {
    let wake = state.withLock { state in
      change(&state)
      return Self.wakeStream(&state)
    }
    wake?()
  }

  private static func wakeStream(_ state: inout State) -> (@Sendable () -> Void)? {
    guard !state.isStreamWoken, let wake = state.wakeStream else { return nil }
    state.isStreamWoken = true
    return wake
  }

  // MARK: The stream's end

  /// - Parameter wake: Called on any thread, and at once.
  func attach(_ wake: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.wakeStream = wake
      state.isStreamWoken = true
    }
    wake()
  }

  func detach() { state.withLock { $0.wakeStream = nil } }

  /// Bytes that were written and not sent.
  var queuedBytes: Int { state.withLock { $0.outbound.count + $0.carried } }

  /// To be called when woken.
  func look() { state.withLock { $0.isStreamWoken = false } }

  /// All that came, and whether it is the last.
  func takeInbound() -> (bytes: [UInt8], isLast: Bool) {
    let (bytes, isLast, isDue) = state.withLock { state -> ([UInt8], Bool, Bool) in
      let bytes = state.inbound
      state.inbound = []
      state.consumed += bytes.count
      return (bytes, state.hasInboundEnded, state.consumed >= consumedStep && Self.wakesCarrier(&state))
    }
    if isDue { wakeCarrier() }
    return (bytes, isLast)
  }

  var isBroken: Bool { state.withLock { $0.isBroken } }

  func write(_ bytes: UnsafeRawBufferPointer) { tellCarrier { $0.outbound += bytes } }

  func end(_ ending: Ending) { tellCarrier { $0.ending = ending } }

  private func tellCarrier(_ change: (inout State) -> Void) {
    let isDue = state.withLock { state in
      guard !state.isBroken else { return false }
      change(&state)
      return Self.wakesCarrier(&state)
    }
    if isDue { wakeCarrier() }
  }

  private static func wakesCarrier(_ state: inout State) -> Bool {
    guard !state.isCarrierWoken else { return false }
    state.isCarrierWoken = true
    return true
  }
}
