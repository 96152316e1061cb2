import Bytes

/// Writes Prometheus' text form.
///
/// HELP texts escape backslash and line feed; label values quotes as well.
struct ExpositionWriter {
  private var writer = ByteWriter(capacity: 16_384)

  mutating func header(_ name: MetricName) {
    writer.append("# HELP ")
    writer.append(name.fullName)
    writer.append(byte: UInt8(ascii: " "))
    appendEscaped(name.help, quotes: false)
    writer.append("\n# TYPE ")
    writer.append(name.fullName)
    writer.append(byte: UInt8(ascii: " "))
    writer.append(name.kind.rawValue)
    writer.append(byte: UInt8(ascii: "\n"))
  }

  mutating func sample(_ name: MetricName, _ labels: [String], _ value: Double) {
    line(name.fullName, name.labels, labels, Self.number(value))
  }

  /// Bucket borders on each second power of two: from 1 µs to 69 s for durations, from 1 to 2^20 else.
  ///
  /// Values are integers, so "at most 2^n - 1" is what a border counts exactly.
  mutating func histogram(_ name: MetricName, _ labels: [String], _ snapshot: HistogramSnapshot) {
    let exponents: StrideTo<Int>
    let scale: Double
    switch name.unit {
    case .nanoseconds: (exponents, scale) = (stride(from: 10, to: 37, by: 2), 1e9)
    case .one: (exponents, scale) = (stride(from: 0, to: 21, by: 2), 1)
    }
    let bucketLabels = name.labels + ["le"]
    for exponent in exponents {
      let border = Double((UInt64(1) << UInt64(exponent)) - 1) / scale
      line(
        name.fullName + "_bucket", bucketLabels, labels + [Self.number(border)],
        String(snapshot.count(belowPowerOfTwo: exponent)))
    }
    let total = String(snapshot.count)
    line(name.fullName + "_bucket", bucketLabels, labels + ["+Inf"], total)
    line(name.fullName + "_sum", name.labels, labels, Self.number(Double(snapshot.sum) / scale))
    line(name.fullName + "_count", name.labels, labels, total)
  }

  mutating func finish() -> [UInt8] { writer.take() }

  private mutating func line(_ name: String, _ labels: [String], _ values: [String], _ number: String) {
    writer.append(name)
    var separator: StaticString = "{"
    for (label, value) in zip(labels, values) {
      writer.append(separator)
      writer.append(label)
      writer.append("=\"")
      appendEscaped(value, quotes: true)
      writer.append("\"")
      separator = ","
    }
    if !labels.isEmpty { writer.append("}") }
    writer.append(byte: UInt8(ascii: " "))
    writer.append(number)
    writer.append(byte: UInt8(ascii: "\n"))
  }

  private mutating func appendEscaped(_ text: String, quotes: Bool) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\\"): writer.append("\\\\")
      case UInt8(ascii: "\n"): writer.append("\\n")
      case UInt8(ascii: "\"") where quotes: writer.append("\\\"")
      default: writer.append(byte: byte)
      }
    }
  }

  private static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    if let whole = Int64(exactly: value), whole.magnitude < 1 << 53 { return String(whole) }
    return value.description
  }
}
