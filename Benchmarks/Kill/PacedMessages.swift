import StreamClient

/// Numbered messages at a steady rate, round the tokens.
struct PacedMessages: AsyncSequence, Sendable {
  let tokens: [String]
  let rate: Int
  let first: Int
  let step: Int
  let isStopped: @Sendable () -> Bool
  let sent: @Sendable (Int) -> Void
  /// Of message ids; the numbers follow.
  var prefix = "k-"
  /// Numbers stay below it.
  var end = Int.max
  /// Sends what an outage kept back at once when it is over.
  var catchesUp = true

  func makeAsyncIterator() -> Iterator { Iterator(source: self, number: first) }

  struct Iterator: AsyncIteratorProtocol {
    let source: PacedMessages
    var number: Int
    private var start = ContinuousClock.now
    private var count = 0

    init(source: PacedMessages, number: Int) {
      self.source = source
      self.number = number
    }

    mutating func next() async -> PushMessage? {
      if source.isStopped() || number >= source.end { return nil }
      // Paced in hundredths of a second: finer would only cost wake-ups.
      let due = start + .microseconds(Int64(count) * 1_000_000 / Int64(source.rate))
      let now = ContinuousClock.now
      if due - now > .milliseconds(10) {
        try? await Task.sleep(until: due, clock: .continuous)
      } else if !source.catchesUp, now - due > .milliseconds(500) {
        start += now - due
      }
      let token = source.tokens[number % source.tokens.count]
      let message = PushMessage(
        to: .token(token),
        data: ["n": String(number), "text": String(repeating: "the quick brown fox ", count: 20)],
        id: source.prefix + String(number))
      source.sent(number)
      number += source.step
      count += 1
      return message
    }
  }
}
