/// Bytes of an item that began in an earlier chunk.
///
/// Holds no memory while empty.
struct Carry: ~Copyable {
  private var storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private(set) var count = 0

  var bytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: storage[0..<count])
  }

  /// Appends; the caller bounds the sum.
  mutating func append(_ more: UnsafeRawBufferPointer) {
    guard let source = more.baseAddress, !more.isEmpty else { return }
    let needed = count + more.count
    if needed > storage.count {
      let grown = UnsafeMutableRawBufferPointer.allocate(
        byteCount: max(needed, storage.count * 2, 256), alignment: 16)
      grown.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[0..<count]))
      storage.deallocate()
      storage = grown
    }
    // proof: `storage` holds at least `needed` bytes, so it has a base address.
    storage.baseAddress?.advanced(by: count).copyMemory(from: source, byteCount: more.count)
    count = needed
  }

  /// Empties and gives the memory back.
  mutating func release() {
    storage.deallocate()
    storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    count = 0
  }

  deinit { storage.deallocate() }
}
