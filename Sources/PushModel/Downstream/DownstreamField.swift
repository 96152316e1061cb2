import Glibc
import JSONCore

/// The top-level fields that a downstream message or an app server's ack may have; others are ignored.
enum DownstreamField: UInt8, CaseIterable {
  case to, condition, messageID, messageType, collapseKey, priority, timeToLive, data, notification
  case contentAvailable, mutableContent, receiptRequested, dryRun, delayWhileIdle, restrictedPackageName
  case registrationIDs, notificationKey

  var name: StaticString {
    switch self {
    case .to: "to"
    case .condition: "condition"
    case .messageID: "message_id"
    case .messageType: "message_type"
    case .collapseKey: "collapse_key"
    case .priority: "priority"
    case .timeToLive: "time_to_live"
    case .data: "data"
    case .notification: "notification"
    case .contentAvailable: "content_available"
    case .mutableContent: "mutable_content"
    case .receiptRequested: "delivery_receipt_requested"
    case .dryRun: "dry_run"
    case .delayWhileIdle: "delay_while_idle"
    case .restrictedPackageName: "restricted_package_name"
    case .registrationIDs: "registration_ids"
    case .notificationKey: "notification_key"
    }
  }

  /// Finds the field by length and first letter, then compares.
  static func find(_ name: UnsafeRawBufferPointer) -> DownstreamField? {
    let candidate: DownstreamField
    switch (name.count, name.first) {
    case (2, UInt8(ascii: "t")): candidate = .to
    case (4, UInt8(ascii: "d")): candidate = .data
    case (7, UInt8(ascii: "d")): candidate = .dryRun
    case (8, UInt8(ascii: "p")): candidate = .priority
    case (9, UInt8(ascii: "c")): candidate = .condition
    case (10, UInt8(ascii: "m")): candidate = .messageID
    case (12, UInt8(ascii: "c")): candidate = .collapseKey
    case (12, UInt8(ascii: "m")): candidate = .messageType
    case (12, UInt8(ascii: "n")): candidate = .notification
    case (12, UInt8(ascii: "t")): candidate = .timeToLive
    case (15, UInt8(ascii: "m")): candidate = .mutableContent
    case (16, UInt8(ascii: "d")): candidate = .delayWhileIdle
    case (16, UInt8(ascii: "n")): candidate = .notificationKey
    case (16, UInt8(ascii: "r")): candidate = .registrationIDs
    case (17, UInt8(ascii: "c")): candidate = .contentAvailable
    case (23, UInt8(ascii: "r")): candidate = .restrictedPackageName
    case (26, UInt8(ascii: "d")): candidate = .receiptRequested
    default: return nil
    }
    guard let base = name.baseAddress, memcmp(base, candidate.name.utf8Start, name.count) == 0 else {
      return nil
    }
    return candidate
  }
}
