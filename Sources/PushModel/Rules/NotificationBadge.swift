package import Bytes
import JSONCore

/// A badge that counts: `"+1"` in `notification.badge` raises the user's stored badge (an extension).
package enum NotificationBadge {
  /// What the text adds: 1 to 9,999 behind a plus sign, else 0.
  package static func step(_ text: UnsafeRawBufferPointer) -> Int {
    guard text.first == UInt8(ascii: "+"), (2...5).contains(text.count),
      let step = JSONNumber.integer(UnsafeRawBufferPointer(rebasing: text[1...])), step > 0
    else { return 0 }
    return Int(step)
  }

  /// Appends a notification object with `badge` as the string of that number; all else as it came.
  package static func append(
    _ notification: UnsafeRawBufferPointer, badge: Int64, to writer: inout ByteWriter
  ) {
    var document = JSONDocument(depthMax: 64, recordedDepth: 1)
    // It was read as part of a valid text.
    guard (try? document.read(notification)) != nil else {
      writer.append("{}")
      return
    }
    writer.append("{")
    for (index, member) in document.members.enumerated() {
      writer.append(index == 0 ? "\"" : ",\"")
      writer.append(member.name.raw(in: notification))
      writer.append("\":")
      if member.name.equals("badge", in: notification) {
        writer.append("\"")
        writer.append(decimal: badge)
        writer.append("\"")
      } else {
        writer.append(member.value.raw(in: notification))
      }
    }
    writer.append("}")
  }
}
