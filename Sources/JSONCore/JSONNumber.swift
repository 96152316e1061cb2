/// Numbers read from their digits, never by way of a floating-point value.
package enum JSONNumber {
  /// Reads an optional minus sign and decimal digits and nothing else.
  ///
  /// - Returns: Nil when there is a fraction or an exponent, or when 64 bits do not hold it.
  package static func integer(_ digits: UnsafeRawBufferPointer) -> Int64? {
    var at = 0
    var negative = false
    if let first = digits.first, first == UInt8(ascii: "-") {
      negative = true
      at = 1
    }
    guard at < digits.count else { return nil }
    var value: Int64 = 0
    while at < digits.count {
      let digit = digits[at] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      let (shifted, tooLong) = value.multipliedReportingOverflow(by: 10)
      let (sum, tooMuch) =
        negative
        ? shifted.subtractingReportingOverflow(Int64(digit)) : shifted.addingReportingOverflow(Int64(digit))
      guard !tooLong, !tooMuch else { return nil }
      value = sum
      at &+= 1
    }
    return value
  }
}
