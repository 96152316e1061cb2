import PushModel

/// Gives devices and registrations that are moved numbers with a slot, in the order that they had.
package struct MovedRenumbering: Sendable {
  private var devices: [Int64: Int64] = [:]
  private var registrations: [Int64: Int64] = [:]

  package init() {}

  /// The row as it is to be stored; tables come in the order of ``MovedTable/all``.
  ///
  /// - Throws: ``StoreFault/corrupt(detail:)`` for a row of a device that is not there.
  package mutating func renumbered(
    _ row: [MovedValue], of table: MovedTable
  ) throws(StoreFault) -> [MovedValue] {
    var row = row
    func place(_ column: String) throws(StoreFault) -> Int {
      guard let place = table.columns.firstIndex(where: { $0.name == column }) else {
        throw .corrupt(detail: "table \(table.name) has no column \(column)")
      }
      return place
    }
    func number(_ column: String) throws(StoreFault) -> Int64? {
      if case .int(let number) = row[try place(column)] { number } else { nil }
    }
    switch table.name {
    case "device":
      guard let old = try number("number"), case .bytes(let name) = row[try place("device_id")] else { break }
      let slot = StoreSlots.slot(of: String(decoding: name, as: UTF8.self))
      devices[old] = StoreSlots.number(old, in: slot)
      row[try place("number")] = .int(StoreSlots.number(old, in: slot))
    case "registration":
      guard let old = try number("number"), let device = try number("device") else { break }
      let new = try Self.find(device, in: devices, table)
      registrations[old] = StoreSlots.number(old, in: StoreSlots.slot(of: DeviceNumber(new)))
      row[try place("number")] = .int(registrations[old] ?? old)
      row[try place("device")] = .int(new)
    case "message":
      guard let device = try number("device") else { break }
      row[try place("device")] = .int(try Self.find(device, in: devices, table))
      if let share = try number("share") {
        // A registration that is gone is nobody's.
        row[try place("share")] = .int(registrations[share] ?? StoreSlots.number(share, in: 0))
      }
    case "upstream":
      // Of a device that is gone it remains all the same.
      guard let device = try number("device") else { break }
      row[try place("device")] = .int(devices[device] ?? StoreSlots.number(device, in: 0))
    case "subscription", "group_member":
      guard let registration = try number("registration") else { break }
      row[try place("registration")] = .int(try Self.find(registration, in: registrations, table))
    case "fanout":
      guard let visited = try number("place"), visited > 0 else { break }
      row[try place("place")] = .int(StoreSlots.number(visited, in: StoreSlots.count - 1))
    case "journal":
      guard case .bytes(let entries) = row[try place("entries")] else { break }
      row[try place("entries")] = .bytes(try renumbered(journal: entries))
    default: break
    }
    return row
  }

  private func renumbered(journal bytes: [UInt8]) throws(StoreFault) -> [UInt8] {
    guard var entries = bytes.withUnsafeBytes({ JournalPacking.unpackBackwards($0) }) else {
      throw .corrupt(detail: "table journal: entries that cannot be read")
    }
    entries.reverse()
    for index in entries.indices {
      if let new = devices[entries[index].device.value] { entries[index].device = DeviceNumber(new) }
    }
    return JournalPacking.pack(entries)
  }

  private static func find(
    _ number: Int64, in numbers: [Int64: Int64], _ table: MovedTable
  ) throws(StoreFault) -> Int64 {
    guard let new = numbers[number] else {
      throw .corrupt(detail: "table \(table.name) has a row of \(number), which is not there")
    }
    return new
  }
}
