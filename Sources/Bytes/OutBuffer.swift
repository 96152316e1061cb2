import Glibc

/// A growable run of raw bytes with a stable address between two appends.
///
/// Made for bytes on their way out: what C calls write from or into. It belongs to one thread at a time, is
/// passed by reference and pooled by its owners. Appending never zeroes memory and copies once.
package final class OutBuffer {
  private var base: UnsafeMutableRawPointer?
  /// Bytes memory is held for; 0 until the first append.
  package private(set) var capacity = 0
  private var start = 0
  private var end = 0

  package init() {}

  deinit { free(base) }

  /// Bytes held.
  package var count: Int { end &- start }
  package var isEmpty: Bool { end == start }

  /// What is held, in order.
  ///
  /// Good until the next call that changes the buffer.
  package var bytes: UnsafeRawBufferPointer {
    guard let base else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(start: base + start, count: end &- start)
  }

  package func append(_ more: UnsafeRawBufferPointer) {
    guard let source = more.baseAddress, !more.isEmpty else { return }
    reserve(more.count).copyMemory(from: source, byteCount: more.count)
    end &+= more.count
  }

  /// Lets `fill` write at most `count` bytes at the end; it returns how many it wrote.
  package func append(reserving count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) {
    guard count > 0 else { return }
    let written = fill(UnsafeMutableRawBufferPointer(start: reserve(count), count: count))
    end &+= min(max(0, written), count)
  }

  /// Drops `count` bytes from the front, all of them at most.
  package func removeFirst(_ count: Int) {
    start &+= min(max(0, count), self.count)
    if start == end { removeAll() }
  }

  /// Empties the buffer and keeps its memory.
  package func removeAll() {
    start = 0
    end = 0
  }

  /// Empties the buffer and gives its memory back.
  package func release() {
    free(base)
    base = nil
    capacity = 0
    removeAll()
  }

  private func reserve(_ more: Int) -> UnsafeMutableRawPointer {
    if let base, capacity &- end >= more { return base + end }
    if let base, start > 0, capacity &- count >= more, start >= count {
      (base).copyMemory(from: base + start, byteCount: count)
      end = count
      start = 0
      return base + end
    }
    let wanted = end + more
    var size = max(2048, capacity)
    while size < wanted { size *= 2 }
    guard let grown = realloc(base, size) else { fatalError("out of memory for \(size) bytes") }
    base = grown
    capacity = size
    return grown + end
  }
}
