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
      if member.kind != .string { facts.isAllStrings = false }
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

  /// The keys of legacy notifications for Android, iOS and web.
  ///
  /// Others pass unseen.
  static func notificationType(of name: JSONString, in text: UnsafeRawBufferPointer) -> NotificationType? {
    name.withDecoded(in: text) { name in
      for (known, type) in notificationKeys where known.utf8CodeUnitCount == name.count {
        if name.elementsEqual(UnsafeBufferPointer(start: known.utf8Start, count: known.utf8CodeUnitCount)) {
          return type
        }
      }
      return nil
    }
  }

  private static let notificationKeys: [(StaticString, NotificationType)] = [
    ("title", .string), ("body", .string), ("subtitle", .string), ("icon", .string), ("tag", .string),
    ("color", .string), ("image", .string), ("click_action", .string), ("android_channel_id", .string),
    ("body_loc_key", .string), ("title_loc_key", .string), ("sound", .stringOrObject),
    ("badge", .stringOrNumber), ("body_loc_args", .stringOrArray), ("title_loc_args", .stringOrArray),
  ]
}
