import PushModel
import Seams

/// One app on one device, as its owner knows it.
final class SimRegistration {
  let number: Int
  let device: Int
  let app: String
  let user: String?
  /// The newest last; the others are aliases of it.
  var tokens: [String]
  var topics: Set<String> = []
  var groups: Set<String> = []
  /// When the wish to unregister was first sent.
  var leftAt: Int64?
  var isRenewing = false

  init(number: Int, device: Int, app: String, user: String?, token: String) {
    self.number = number
    self.device = device
    self.app = app
    self.user = user
    tokens = [token]
  }

  var token: String { tokens[tokens.count - 1] }
}

/// A message that was handed to an app server's library, and all that was seen of it.
final class SentMessage {
  enum Kind { case token, topic, group, user }
  enum Wrong { case badToken, unknownToken, tooBig, badTTL }

  struct Show {
    var at: Int64
    var success: Bool
    /// The process of the app.
    var process: Int
  }

  let number: Int
  let id: String
  let kind: Kind
  /// Numbers of the registrations that it may reach.
  let receivers: [Int]
  let ttl: Int?
  let collapse: String?
  let wantsReceipt: Bool
  let isDryRun: Bool
  let wrong: Wrong?
  let at: Int64

  var isOver: Bool { end != nil }
  var end: End?
  var endedAt: Int64 = 0
  var attempts = 0
  /// By registration.
  var shows: [Int: [Show]] = [:]
  /// By app server process.
  var receipts: [Int: Int] = [:]
  var receiptCount = 0

  enum End: Equatable { case acked, refused(String), unknown(String) }

  init(
    number: Int, id: String, kind: Kind, receivers: [Int], ttl: Int?, collapse: String?, wantsReceipt: Bool,
    isDryRun: Bool, wrong: Wrong?, at: Int64
  ) {
    self.number = number
    self.id = id
    self.kind = kind
    self.receivers = receivers
    self.ttl = ttl
    self.collapse = collapse
    self.wantsReceipt = wantsReceipt
    self.isDryRun = isDryRun
    self.wrong = wrong
    self.at = at
  }

  /// How often an app took it, on that registration.
  func takenCount(_ registration: Int) -> Int { shows[registration]?.count { $0.success } ?? 0 }

  /// The same of one process of the app.
  func takenCount(_ registration: Int, by process: Int) -> Int {
    shows[registration]?.count { $0.success && $0.process == process } ?? 0
  }
}

/// A message that was handed to a device's runtime.
final class SentUpstream {
  let id: String
  let device: Int
  /// The registration in whose name it was sent.
  let token: String
  let ttl: Int?
  let at: Int64
  var end: SentMessage.End?
  var attempts = 0
  /// How often each app server process was shown it.
  var shows: [Int: Int] = [:]
  var successCount = 0

  init(id: String, device: Int, token: String, ttl: Int?, at: Int64) {
    self.token = token
    self.id = id
    self.device = device
    self.ttl = ttl
    self.at = at
  }
}
