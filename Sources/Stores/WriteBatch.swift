package import PushModel

/// What one round of a loop wants written: applied as a whole, in the order of the fields, or not at all.
///
/// Sending the same batch again is harmless: numbers that exist are not written twice, numbers that are gone
/// are not settled twice.
package struct WriteBatch: Sendable {
  package struct Settlement: Sendable, Equatable {
    package var device: DeviceNumber
    package var number: MessageNumber
    package init(device: DeviceNumber, number: MessageNumber) {
      self.device = device
      self.number = number
    }
  }

  package struct UpstreamSettlement: Sendable, Equatable {
    package var sender: SenderID
    package var number: MessageNumber
    package init(sender: SenderID, number: MessageNumber) {
      self.sender = sender
      self.number = number
    }
  }

  package var enqueue: [StoredMessage] = []
  /// Downstream messages that came to an end; their rows are removed.
  package var settle: [Settlement] = []
  package var append: [StoredUpstream] = []
  package var settleUpstream: [UpstreamSettlement] = []
  /// Devices whose overflow notice was acked.
  package var clearOverflow: [DeviceNumber] = []
  package var journal: [JournalEntry] = []

  package init() {}

  package var isEmpty: Bool {
    enqueue.isEmpty && settle.isEmpty && append.isEmpty && settleUpstream.isEmpty
      && clearOverflow.isEmpty && journal.isEmpty
  }
}

/// What became of a ``WriteBatch``; durable when it is handed out.
package struct WriteOutcome: Sendable, Equatable {
  package enum Enqueue: Sendable, Equatable {
    case stored
    /// The device's cap was passed: this message and all its non-collapsible ones were discarded (they are
    /// in `ended`), and its overflow count rose.
    case overflowed
    /// A row of this number is there already, from an earlier sending of the batch.
    case duplicate
    case unknownDevice
  }

  /// A message that this batch brought to an end by a rule: collapse or overflow.
  package struct Ended: Sendable, Equatable {
    package var number: MessageNumber
    package var device: DeviceNumber
    package var sender: SenderID
    package var key: MessageKey
    package var state: MessageState
    package init(
      number: MessageNumber, device: DeviceNumber, sender: SenderID, key: MessageKey,
      state: MessageState
    ) {
      self.number = number
      self.device = device
      self.sender = sender
      self.key = key
      self.state = state
    }
  }

  /// One for each row of `enqueue`, in order.
  package var enqueue: [Enqueue] = []
  package var ended: [Ended] = []

  package init() {}
}
