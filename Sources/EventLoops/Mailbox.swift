import Seams

/// What a loop calls when messages wait.
package protocol WaitingMail: AnyObject, Sendable {
  func deliver()
}

/// Messages from any thread to one loop, handed over in batches.
///
/// A post costs one short lock; the loop is woken once for all mailboxes that became non-empty since it last
/// looked. Messages of one poster arrive in order. A mailbox is not bounded: who posts keeps the count of what
/// it has outstanding (windows do).
package final class Mailbox<Message: Sendable>: WaitingMail {
  private struct Queue {
    var messages: [Message] = []
    var isShut = false
  }

  /// Touched by the loop's thread only.
  private final class Inner {
    var handler: (([Message]) -> Void)?
    var batch: [Message] = []
  }

  /// Capacity, in messages, that a batch may keep between two rounds.
  private static var keptCapacityMax: Int { 16_384 }

  package let loop: any Loop
  private let queue = Guarded(Queue())
  // Sendable by argument: `receive` and `deliver` alone touch it, and both run on the loop's thread.
  nonisolated(unsafe) private let inner = Inner()

  package init(on loop: any Loop) { self.loop = loop }

  /// Sets who gets the batches; what was posted before waits for it.
  ///
  /// Only on the loop's thread.
  ///
  /// The handler runs at most once a round with everything that arrived; posts it makes to its own loop are
  /// delivered in the same round.
  package func receive(_ handler: @escaping (_ batch: [Message]) -> Void) {
    loop.assertCurrent()
    inner.handler = handler
    if !queue.withLock({ $0.messages.isEmpty }) { _ = loop.announce(self) }
  }

  /// Stops delivery and drops what waits.
  ///
  /// Only on the loop's thread. Later posts are refused.
  package func shut() {
    loop.assertCurrent()
    inner.handler = nil
    refuseAll()
  }

  /// - Returns: Whether the message will be delivered: false once the loop has stopped.
  @discardableResult
  package func post(_ message: Message) -> Bool {
    let wasEmpty: Bool? = queue.withLock { queue in
      if queue.isShut { return nil }
      queue.messages.append(message)
      return queue.messages.count == 1
    }
    return announce(wasEmpty)
  }

  /// Posts all of `messages` and leaves the array empty, with memory to fill it again.
  @discardableResult
  package func post(contentsOf messages: inout [Message]) -> Bool {
    guard !messages.isEmpty else { return true }
    let wasEmpty: Bool? = queue.withLock { queue in
      if queue.isShut { return nil }
      if queue.messages.isEmpty {
        swap(&queue.messages, &messages)
        return true
      }
      queue.messages.append(contentsOf: messages)
      return false
    }
    messages.removeAll(keepingCapacity: true)
    return announce(wasEmpty)
  }

  private func announce(_ wasEmpty: Bool?) -> Bool {
    guard let wasEmpty else { return false }
    guard wasEmpty else { return true }
    if loop.announce(self) { return true }
    refuseAll()
    return false
  }

  private func refuseAll() {
    let dropped = queue.withLock { queue in
      queue.isShut = true
      let dropped = queue.messages
      queue.messages = []
      return dropped
    }
    // Messages may own something whose end posts again: never let them go under the lock.
    withExtendedLifetime(dropped) {}
  }

  package func deliver() {
    guard let handler = inner.handler else { return }
    var batch = inner.batch
    inner.batch = []
    queue.withLock { swap(&$0.messages, &batch) }
    guard !batch.isEmpty else {
      inner.batch = batch
      return
    }
    handler(batch)
    batch.removeAll(keepingCapacity: batch.capacity <= Self.keptCapacityMax)
    inner.batch = batch
  }
}

/// Lets a value that is not Sendable cross to another thread once.
///
/// Whoever makes one promises not to touch the value again.
package struct Handover<Value>: @unchecked Sendable {
  package let value: Value

  package init(_ value: Value) { self.value = value }
}
