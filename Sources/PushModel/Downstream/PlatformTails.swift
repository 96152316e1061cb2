package import Bytes
import JSONCore
package import Seams

/// What the receivers of one fan-out share when some platforms get another message than others: all forms of it,
/// of which each device is handed its own.
///
/// `,"platforms":{"base":{…},"ios":{…}}}`, so that together with a head it is a JSON object like any other.
package enum PlatformTails {
  private static let mark: StaticString = ",\"platforms\":{\"base\":{"

  /// Appends the forms; a message without variants is written as ``DeviceMessageWriter/appendTail(_:of:sentTime:badge:to:)``
  /// does.
  package static func append(
    _ draft: DownstreamDraft, of text: UnsafeRawBufferPointer, sentTime: WallTime,
    to writer: inout ByteWriter
  ) {
    guard !draft.variants.isEmpty else {
      return DeviceMessageWriter.appendTail(draft, of: text, sentTime: sentTime, to: &writer)
    }
    writer.append(",\"platforms\":{\"base\":")
    append(one: draft, of: text, sentTime, to: &writer)
    for variant in draft.variants {
      for platform in variant.platforms {
        writer.append(",\"\(platform.rawValue)\":")
        append(one: variant.draft, of: text, sentTime, to: &writer)
      }
    }
    writer.append("}}")
  }

  /// A tail as an object of its own: without the comma it begins with.
  private static func append(
    one draft: DownstreamDraft, of text: UnsafeRawBufferPointer, _ sentTime: WallTime,
    to writer: inout ByteWriter
  ) {
    var tail = ByteWriter()
    DeviceMessageWriter.appendTail(draft, of: text, sentTime: sentTime, to: &tail)
    writer.append("{")
    writer.append(Array(tail.bytes.dropFirst()))
  }

  /// Whether a tail holds forms for several platforms.
  package static func isMarked(_ tail: UnsafeRawBufferPointer) -> Bool {
    guard tail.count >= mark.utf8CodeUnitCount else { return false }
    for at in 0..<mark.utf8CodeUnitCount where tail[at] != mark.utf8Start[at] { return false }
    return true
  }

  /// The tail that registrations of a platform get; nil when it is not one of several forms.
  package static func tail(_ tail: UnsafeRawBufferPointer, for platform: Platform) -> [UInt8]? {
    guard isMarked(tail) else { return nil }
    let object = [UInt8(ascii: "{")] + tail.dropFirst()
    return object.withUnsafeBytes { object -> [UInt8]? in
      var document = JSONDocument(depthMax: 64, recordedDepth: 2)
      guard (try? document.read(object)) != nil, !document.members.isEmpty else { return nil }
      var base: JSONRange?
      var own: JSONRange?
      var at = document.children(of: 0).lowerBound
      while at < document.children(of: 0).upperBound {
        let member = document.members[at]
        let name = member.name.string(in: object)
        if name == "base" { base = member.value }
        if name == platform.rawValue { own = member.value }
        at = member.next
      }
      guard let found = own ?? base else { return nil }
      return [UInt8(ascii: ",")] + found.raw(in: object).dropFirst()
    }
  }
}
