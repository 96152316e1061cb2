import Connections

/// Messages of a device as they arrive; each counts as handled when it is taken.
public struct DeviceMessages: AsyncSequence, Sendable {
  let device: Device
  let channel: BatchChannel<ShownMessage>

  /// Starts to take messages.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(device: device, channel: channel)
  }

  /// Takes messages one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let device: Device
    let channel: BatchChannel<ShownMessage>

    /// The next message; nil when the device is closed or the task was cancelled.
    public mutating func next() async -> DeviceMessage? {
      guard let shown = await channel.receive(1).first else { return nil }
      device.taken([shown.key])
      return shown.message
    }
  }
}

/// Notices of a server that it discarded messages.
public struct DeletedMessagesSequence: AsyncSequence, Sendable {
  let channel: BatchChannel<DeletedMessages>

  /// Starts to take notices.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inner: BatchIterator(channel)) }

  /// Takes notices one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    var inner: BatchIterator<DeletedMessages>

    /// The next notice; nil when the device is closed or the task was cancelled.
    public mutating func next() async -> DeletedMessages? { await inner.value() }
  }
}
