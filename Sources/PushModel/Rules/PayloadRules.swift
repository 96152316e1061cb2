import Glibc
package import JSONCore

/// The rules for `data` and `notification` that every direction and every front door shares.
package enum PayloadRules {
  /// What a look through `data` tells.
  package struct DataFacts: Sendable {
    /// Decoded bytes of names and values.
    package var bytes = 0
    package var isAllStrings = true
    /// The first name that is reserved.
    package var reservedName: JSONString?
  }

  /// Looks through the members `children` of `data`, once.
  package static func data(
    _ children: Range<Int>, of document: JSONDocument, in text: UnsafeRawBufferPointer, reserved: ReservedKeys
  ) -> DataFacts {
    var facts = DataFacts()
    var index = children.lowerBound
    while index < children.upperBound {
      let member = document.members[index]
      facts.bytes &+= member.name.decodedCount &+ member.decodedCount
      if case .string = member.kind {} else { facts.isAllStrings = false }
      if facts.reservedName == nil, reserved.contains(member.name, in: text) {
        facts.reservedName = member.name
      }
      index = member.next
    }
    return facts
  }

  /// Decoded bytes of the names and values of an object's members.
  package static func bytes(_ children: Range<Int>, of document: JSONDocument) -> Int {
    var bytes = 0
    var index = children.lowerBound
    while index < children.upperBound {
      let member = document.members[index]
      bytes &+= member.name.decodedCount &+ member.decodedCount
      index = member.next
    }
    return bytes
  }

  /// What a known key of `notification` may hold.
  enum NotificationType: String {
    case string = "java.lang.String"
    case stringOrObject = "java.lang.String or object"
    case stringOrNumber = "java.lang.String or java.lang.Number"
    case stringOrArray = "java.lang.String or array"

    func admits(_ kind: JSONKind) -> Bool {
      switch (self, kind) {
      case (_, .string), (_, .null), (.stringOrObject, .object), (.stringOrNumber, .number),
        (.stringOrArray, .array):
        true
      default: false
      }
    }
  }

  /// The type of a key of legacy notifications for Android, iOS and web.
  ///
  /// Others pass unseen.
  static func notificationType(of name: JSONString, in text: UnsafeRawBufferPointer) -> NotificationType? {
    name.lent(in: text) { name in
      let candidate: (StaticString, NotificationType)
      switch (name.count, name.first) {
      case (3, _): candidate = ("tag", .string)
      case (4, UInt8(ascii: "b")): candidate = ("body", .string)
      case (4, _): candidate = ("icon", .string)
      case (5, UInt8(ascii: "t")): candidate = ("title", .string)
      case (5, UInt8(ascii: "c")): candidate = ("color", .string)
      case (5, UInt8(ascii: "i")): candidate = ("image", .string)
      case (5, UInt8(ascii: "b")): candidate = ("badge", .stringOrNumber)
      case (5, _): candidate = ("sound", .stringOrObject)
      case (8, _): candidate = ("subtitle", .string)
      case (12, UInt8(ascii: "c")): candidate = ("click_action", .string)
      case (12, _): candidate = ("body_loc_key", .string)
      case (13, UInt8(ascii: "t")): candidate = ("title_loc_key", .string)
      case (13, _): candidate = ("body_loc_args", .stringOrArray)
      case (14, _): candidate = ("title_loc_args", .stringOrArray)
      case (18, _): candidate = ("android_channel_id", .string)
      default: return nil
      }
      guard let base = name.baseAddress, memcmp(base, candidate.0.utf8Start, name.count) == 0 else {
        return nil
      }
      return candidate.1
    }
  }
}
