package import PushModel

/// How devices, senders and users are spread over several stores.
///
/// A device's number holds its slot in its lowest 10 bits, so what is known by number needs no look-up. Which store has a
/// slot follows from how many stores there are; with one more, only the slots that go to the new one change.
package enum StoreSlots {
  package static let count = 1_024

  /// The slot of a name, the same for ever: FNV-1a, with its bits mixed once more.
  package static func slot(of name: String) -> Int {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return slot(mixing: hash)
  }

  package static func slot(of sender: SenderID) -> Int {
    slot(mixing: UInt64(bitPattern: sender.value) &* 0x9e37_79b9_7f4a_7c15)
  }

  package static func slot(of device: DeviceNumber) -> Int { Int(device.value & Int64(count - 1)) }

  /// A number for a new device or registration: the `ordinal`th that a store made, in a slot.
  package static func number(_ ordinal: Int64, in slot: Int) -> Int64 { ordinal << 10 | Int64(slot) }

  private static func slot(mixing hash: UInt64) -> Int {
    var mixed = hash ^ (hash >> 33)
    mixed = mixed &* 0xff51_afd7_ed55_8ccd
    return Int((mixed ^ (mixed >> 33)) % UInt64(count))
  }

  /// The store of a slot, 0 to `stores` - 1 (Lamping and Veach's jump hash).
  package static func store(of slot: Int, among stores: Int) -> Int {
    var key = UInt64(slot) &* 0xd134_2543_de82_ef95 &+ 1
    var found = 0
    var next = 0
    while next < stores {
      found = next
      key = key &* 2_862_933_555_777_941_757 &+ 1
      next = Int(Double(found + 1) * (Double(UInt64(1) << 31) / Double((key >> 33) + 1)))
    }
    return found
  }
}
