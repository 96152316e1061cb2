import Bytes
import Connections
import EventLoops
import PushModel
import PushXMPP
import Seams

/// One app server stream of a load test, and what became of its messages.
///
/// Belongs to the run's loop.
final class LoadSender {
  private static let windowOfProtocol = 100

  let number: Int
  var ledger: SendLedger
  private(set) var stream: LeanStream?
  private unowned let run: LoadRun
  /// Written on this stream and not answered.
  private var pending = 0
  /// Messages that may be pending.
  private var window = 100
  /// Written on an earlier stream and not answered: written again first, under the same ids.
  private var redo: [Int] = []
  private var failures = 0
  /// The last answer, or the moment since when answers were owed.
  private var lastAnswer = Moment(ns: 0)
  private var isDraining = false
  private var reader = ServerPayloadReader()
  private let stanzas = PushStanzas()

  init(_ number: Int, run: LoadRun) {
    self.number = number
    self.run = run
    ledger = SendLedger(countsDeliveries: run.hasDevices)
  }

  var isUp: Bool { stream?.isReady ?? false }
  var isAnswered: Bool { ledger.unanswered == 0 }
  var pendingCount: Int { pending }
  /// Due and not written yet.
  var backlog: Int { ledger.due - ledger.written }

  func connect() {
    guard stream == nil else { return }
    let stream = LeanStream(
      identity: run.setup.senderID + "@fcm.googleapis.com", password: run.setup.serverKey,
      server: run.setup.server, window: run.window > Self.windowOfProtocol ? run.window : nil,
      scratch: run.scratch, on: run.loop)
    self.stream = stream
    stream.ready = { [unowned self] stream in
      failures = 0
      window = min(run.window, max(Self.windowOfProtocol, stream.grantedWindow ?? 0))
      isDraining = false
      pending = 0
      redo = Array(ledger.unansweredNumbers().reversed())
      run.senderUp()
      pump()
    }
    stream.received = { [unowned self] in received($0, $1) }
    stream.failed = { [unowned self] why in
      self.stream = nil
      failures += 1
      run.senderLost(self, why, failures: failures)
    }
    stream.connect()
  }

  /// Gives a stream up that owes answers and says nothing.
  func look(_ now: Moment) {
    guard let stream, stream.isReady, pending > 0, now - lastAnswer > run.scenario.senders.answerWithin else {
      return
    }
    stream.close()
    self.stream = nil
    failures += 1
    run.senderLost(self, "no answer for \(run.scenario.senders.answerWithin)", failures: failures)
  }

  func close() {
    stream?.close()
    stream = nil
  }

  // MARK: Out

  /// Writes what the window has room for.
  func pump() {
    guard let stream, stream.isReady, !isDraining else { return }
    if pending == 0 { lastAnswer = run.clock }
    while pending < window, let next = takeNext() {
      pending += 1
      run.write(next, of: number)
      run.output.bytes.withUnsafeBytes { stream.send($0) }
    }
  }

  private func takeNext() -> Int? {
    if let again = redo.popLast() { return again }
    guard run.isLoading else { return nil }
    if ledger.written == ledger.due {
      guard !run.isOpenLoop else { return nil }
      _ = ledger.take(intended: run.clock.ns)
      run.second.due += 1
    }
    let next = ledger.written
    ledger.write(next, deliveries: run.deliveries(of: next, by: number))
    run.second.written += 1
    return next
  }

  // MARK: In

  private func received(_ stream: LeanStream, _ json: UnsafeRawBufferPointer) {
    // Answers as this server writes them; whatever looks different is read in full.
    if let type = Lean.text(of: json, behind: "\"message_type\":\""), let id = Lean.messageID(json) {
      if type.elementsEqual("ack".utf8) { return answered(id, code: nil) }
      if type.elementsEqual("nack".utf8), let code = Lean.text(of: json, behind: "\"error\":\"") {
        return answered(id, code: String(decoding: code, as: UTF8.self))
      }
    }
    guard let payload = try? reader.read(json) else { return }
    switch payload {
    case .ack(let id, _, _): answered(id, code: nil)
    case .nack(let nack): answered(nack.messageID, code: nack.error)
    case .draining: isDraining = true
    case .upstream(let message):
      run.upstreamReceived(message.messageID)
      ack(message.from, message.messageID, on: stream)
    case .receipt(let receipt): ack(receipt.from, receipt.messageID, on: stream)
    case .unknown: break
    }
  }

  private func answered(_ id: String, code: String?) {
    Array(id.utf8).withUnsafeBytes { answered($0, code: code) }
  }

  private func answered(_ id: UnsafeRawBufferPointer, code: String?) {
    guard let number = run.messageNumber(id, of: self.number) else { return }
    if code == "CONNECTION_DRAINING" {
      // Taken by nobody: written again on the next stream.
      isDraining = true
      return
    }
    lastAnswer = run.clock
    let isUnsure = code == "SERVICE_UNAVAILABLE" || code == "INTERNAL_SERVER_ERROR"
    let (isFirst, intended) = ledger.answer(number, isAck: code == nil, isUnsure: isUnsure)
    guard isFirst else { return }
    pending -= 1
    run.answered(code: code, intended: intended)
    pump()
  }

  private func ack(_ to: String, _ id: String, on stream: LeanStream) {
    run.output.removeAll()
    stanzas.appendClientAck(to: to, messageID: id, to: &run.output)
    run.output.bytes.withUnsafeBytes { stream.send($0) }
  }
}
