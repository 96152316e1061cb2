import CLinux

enum Search {
  /// Where `needle` first stands in `text`.
  static func first(_ needle: UnsafeRawBufferPointer, in text: UnsafeRawBufferPointer) -> Int? {
    guard let base = text.baseAddress,
      let found = memmem(base, text.count, needle.baseAddress, needle.count)
    else { return nil }
    return UnsafeRawPointer(found) - base
  }
}
