package import Bytes
import CHTTPParser
package import Seams

/// Writes messages of HTTP/1.1.
///
/// Names and values from elsewhere cannot begin a new line: control characters become blanks.
package struct HTTPWriter: Sendable {
  private var dates = HTTPDateCache()

  package init() {}

  /// Appends a response to `output`.
  ///
  /// - Parameters:
  ///   - isHead: The request's method was HEAD: the length is told, the body is not sent.
  ///   - closes: Tells the peer that this is the last answer.
  ///   - wall: For the `Date` field; formatted once a second.
  package mutating func append(
    _ response: HTTPResponse, isHead: Bool, closes: Bool, wall: WallTime, to output: inout ByteWriter
  ) {
    Self.appendStatusLine(response.status, to: &output)
    output.append("date: ")
    output.append(dates.text(wall))
    output.append("\r\n")
    response.fields.safe.forEach { name, value in
      output.append(name)
      output.append(": ")
      output.append(value)
      output.append("\r\n")
    }
    let hasBody = response.status >= 200 && response.status != 204 && response.status != 304
    if hasBody {
      output.append("content-length: ")
      output.append(decimal: Int64(response.body.count))
      output.append("\r\n")
    }
    if closes { output.append("connection: close\r\n") }
    output.append("\r\n")
    if hasBody && !isHead { output.append(response.body) }
  }

  package static func appendStatusLine(_ status: Int, to output: inout ByteWriter) {
    if status == 200 {
      output.append("HTTP/1.1 200 OK\r\n")
      return
    }
    output.append("HTTP/1.1 ")
    output.append(decimal: Int64(status))
    output.append(byte: 0x20)
    output.append(String(cString: http_status_str(http_status(UInt32(clamping: status)))))
    output.append("\r\n")
  }

  package static func append(_ name: String, _ value: String, to output: inout ByteWriter) {
    appendSafe(name, to: &output)
    output.append(": ")
    appendSafe(value, to: &output)
    output.append("\r\n")
  }

  static func appendSafe(_ text: String, to output: inout ByteWriter) {
    for byte in text.utf8 { output.append(byte: byte < 0x20 || byte == 0x7F ? 0x20 : byte) }
  }
}

/// The bytes of the `Date` field, made once a second.
struct HTTPDateCache: Sendable {
  private var second = Int64.min
  private var date: [UInt8] = []

  mutating func text(_ wall: WallTime) -> [UInt8] {
    // Floor, so that one second of the cache is one second of the text.
    let second = wall.ms >= 0 ? wall.ms / 1_000 : (wall.ms &- 999) / 1_000
    if second != self.second || date.isEmpty {
      self.second = second
      date = Array(HTTPDate.text(wall).utf8)
    }
    return date
  }
}

/// The date form of HTTP header fields.
///
/// `Sun, 06 Nov 1994 08:49:37 GMT`, RFC 9110 §5.6.7.
package enum HTTPDate {
  package static func text(_ wall: WallTime) -> String {
    let civil = CivilTime(wall)
    let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    let months = [
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let date = "\(padded(civil.day)) \(months[civil.month - 1]) \(civil.year)"
    let time = "\(padded(civil.hour)):\(padded(civil.minute)):\(padded(civil.second))"
    return "\(weekdays[civil.weekday]), \(date) \(time) GMT"
  }
}
