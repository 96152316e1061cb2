package import PushModel

/// What one round of a loop wants written: applied as a whole, in the order of the fields, or not at all.
///
/// Sending the same batch again after an unknown outcome is harmless: numbers that exist are not written
/// twice, numbers that are gone are not settled twice, and a row that a newer one collapsed is collapsed
/// again. The store does not remember what it removed: a row that was written and settled, or discarded by
/// overflow, comes back when its batch is sent again (and ends again; the device hides the repeat). So a
/// caller sends a batch again before it sends what settles its rows.
package struct WriteBatch: Sendable {
  package struct Settlement: Sendable, Hashable {
    package var device: DeviceNumber
    package var number: MessageNumber
    /// How a message of a fan-out ended, to be counted with its job; nil for any other message.
    package var end: MessageState?
    package init(device: DeviceNumber, number: MessageNumber, end: MessageState? = nil) {
      self.device = device
      self.number = number
      self.end = end
    }
  }

  package struct UpstreamSettlement: Sendable, Hashable {
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
  /// Discarded messages that devices were told of for certain.
  package var overflowTold: [OverflowTold] = []
  package var journal: [JournalEntry] = []
  /// Ends of fan-out messages that were never stored.
  ///
  /// They count again when a batch is sent again, as ``overflowTold`` does.
  package var fanoutEnds: [FanoutEnd] = []

  /// How many discarded messages a device was told of: so many less are to be told.
  package struct OverflowTold: Sendable, Hashable {
    package var device: DeviceNumber
    package var count: Int
    package init(device: DeviceNumber, count: Int) {
      self.device = device
      self.count = count
    }
  }

  package struct FanoutEnd: Sendable, Hashable {
    package var job: MessageNumber
    package var state: MessageState
    package var count: Int
    package init(job: MessageNumber, state: MessageState, count: Int) {
      self.job = job
      self.state = state
      self.count = count
    }
  }

  package init() {}

  package var isEmpty: Bool {
    enqueue.isEmpty && settle.isEmpty && append.isEmpty && settleUpstream.isEmpty
      && overflowTold.isEmpty && journal.isEmpty && fanoutEnds.isEmpty
  }
}

/// What became of a ``WriteBatch``; durable when it is handed out.
package struct WriteOutcome: Sendable, Equatable {
  package enum Enqueue: Sendable, Equatable {
    /// Durable; also when it ended at once because a newer row of its collapse key is there (see `ended`).
    case stored
    /// The device's cap was passed: this message and all its non-collapsible ones were discarded (they are
    /// in `ended`), and its overflow count rose.
    case overflowed
    /// A row of this number is there already, from an earlier sending of the batch.
    case duplicate
    case unknownDevice
  }

  /// A message that came to an end by a rule of the store: collapse, overflow, expiry, unregistration.
  package struct Ended: Sendable, Equatable {
    package var number: MessageNumber
    package var device: DeviceNumber
    package var sender: SenderID
    package var key: MessageKey
    package var state: MessageState
    /// The fan-out that it was one receiver's share of, and that has counted the end.
    package var job: MessageNumber?
    package init(
      number: MessageNumber, device: DeviceNumber, sender: SenderID, key: MessageKey,
      state: MessageState, job: MessageNumber? = nil
    ) {
      self.number = number
      self.device = device
      self.sender = sender
      self.key = key
      self.state = state
      self.job = job
    }
  }

  /// One for each row of `enqueue`, in order.
  package var enqueue: [Enqueue] = []
  /// What the enqueued rows brought to an end, in the order in which it happened.
  ///
  /// Beside `collapsed` and `droppedOverflow` there is `expired`: expired rows make room before a cap is held
  /// to be passed.
  package var ended: [Ended] = []

  package init() {}
}
