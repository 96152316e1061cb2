package import Bytes

/// A sender id: the numeric project number that app servers log in with and devices address.
package struct SenderID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package var value: Int64
  package init(_ value: Int64) { self.value = value }
  package static func < (left: SenderID, right: SenderID) -> Bool { left.value < right.value }
  package var description: String { String(value) }

  /// Reads 1 to 18 decimal digits; anything else is nil.
  package init?(text: some StringProtocol) {
    guard (1...18).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }),
      let value = Int64(text)
    else { return nil }
    self.init(value)
  }
}

/// The store's number of a device.
///
/// One device may hold several registrations (apps).
package struct DeviceNumber: Hashable, Comparable, Sendable {
  package var value: Int64
  package init(_ value: Int64) { self.value = value }
  package static func < (left: DeviceNumber, right: DeviceNumber) -> Bool { left.value < right.value }
}

/// The server's own number of one message, made when it is accepted: 63 bits, rising, never reused.
package struct MessageNumber: Hashable, Comparable, Sendable {
  package var value: UInt64
  package init(_ value: UInt64) { self.value = value }
  package static func < (left: MessageNumber, right: MessageNumber) -> Bool { left.value < right.value }
}

/// What makes two sends one message: a keyed 128-bit hash of (sender id, message id), or for upstream of
/// (device, message id).
///
/// The same on every run of a node, so a device recognises a repeat after a restart.
package struct MessageKey: Hashable, Comparable, Sendable {
  package var hash: Hash128
  package init(_ hash: Hash128) { self.hash = hash }
  package static func < (left: MessageKey, right: MessageKey) -> Bool { left.hash < right.hash }
}

extension MessageKey {
  /// The key of one receiver's share of a message to many: stable, and another one for each receiver.
  ///
  /// Two apps of one device that get the same topic message see two message ids, so neither counts as a repeat of
  /// the other.
  package func share(of registration: RegistrationNumber) -> MessageKey {
    // One step of SplitMix64: a bijection, so two registrations never meet under one key.
    var mixed = UInt64(bitPattern: registration.value) &+ 0x9e37_79b9_7f4a_7c15
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return MessageKey(Hash128(high: hash.high ^ mixed, low: hash.low &+ (mixed ^ (mixed >> 31))))
  }
}

/// The store's number of a registration: rising from 1 in the order of registration, never used again.
package struct RegistrationNumber: Hashable, Comparable, Sendable {
  package var value: Int64
  package init(_ value: Int64) { self.value = value }
  package static func < (left: RegistrationNumber, right: RegistrationNumber) -> Bool {
    left.value < right.value
  }
}
