import PushModel

/// What the writer knows about the stored messages of one device without asking the table.
///
/// A class, so that it changes in place in the cache.
final class Shelf {
  struct Keyed {
    var collapse: String
    var number: MessageNumber
  }

  /// Non-collapsible rows.
  var looseCount = 0
  /// Collapsible rows: one a collapse key.
  var keyed: [Keyed] = []
  /// A node holds the device's stream.
  var held = false
  /// Some row may be marked live.
  var mayHaveLive = false

  var isEmpty: Bool { looseCount == 0 && keyed.isEmpty }

  /// A row was deleted that was there.
  func removed(_ number: MessageNumber) {
    if let index = keyed.firstIndex(where: { $0.number == number }) {
      keyed.remove(at: index)
    } else {
      looseCount -= 1
    }
  }
}

/// The shelves of the devices that were written to last, at most about `max` of them.
///
/// Two generations: when the young one has `max / 2`, it becomes the old one, and what was old and not asked
/// for since is forgotten. No bookkeeping on a hit.
struct ShelfCache {
  private var young: [DeviceNumber: Shelf] = [:]
  private var old: [DeviceNumber: Shelf] = [:]
  private let generationMax: Int

  init(max: Int) { generationMax = Swift.max(1, max / 2) }

  subscript(device: DeviceNumber) -> Shelf? {
    mutating get {
      if let shelf = young[device] { return shelf }
      guard let shelf = old[device] else { return nil }
      insert(shelf, for: device)
      return shelf
    }
  }

  mutating func insert(_ shelf: Shelf, for device: DeviceNumber) {
    if young.count >= generationMax {
      old = young
      young = [:]
    }
    young[device] = shelf
  }

  mutating func removeAll() {
    young = [:]
    old = [:]
  }
}
