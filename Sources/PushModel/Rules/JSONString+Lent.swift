import JSONCore

extension JSONString {
  /// Lends the value's bytes like ``JSONString/withDecoded(in:_:)``.
  ///
  /// It stands in this module because a generic function of another one is called unspecialised, at several
  /// times the cost of what the hot path does inside.
  @inline(__always)
  func lent<Result>(in text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if !isEscaped { return body(raw(in: text)) }
    return withDecoded(in: text, body)
  }
}
