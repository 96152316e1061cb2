/// What a load test does: every number of it.
package struct LoadScenario: Sendable, Equatable {
  package struct Wave: Sendable, Equatable {
    /// Seconds since the load began.
    package var at: Double
    /// Share of the devices that lose their streams at once, 0 to 1.
    package var share: Double

    package init(at: Double, share: Double) {
      self.at = at
      self.share = share
    }
  }

  package struct Devices: Sendable, Equatable {
    package var count = 100
    /// Connections that are begun a second, at the start and after losses.
    package var connectRate = 500.0
    /// Connections that are under way at once, at most: more would only wait at the server until they time out.
    package var connectingMax = 1_000
    /// Devices a second that cut their stream and come back.
    package var churn = 0.0
    /// Longest time a device stays away; drawn between 0 and this.
    package var away = Duration.seconds(1)
    /// Devices that ack late, and how late.
    package var slowAcks = 0
    package var slowAckDelay = Duration.milliseconds(500)
    /// Devices that read slowly, and how many bytes a second.
    package var slowReaders = 0
    package var slowReaderBytes = 2_000
    /// Devices that log in and then neither read nor answer.
    package var halfOpen = 0
    package var waves: [Wave] = []

    package init() {}
  }

  package struct Senders: Sendable, Equatable {
    package var count = 1
    /// Messages of one sender that are written and not answered.
    package var window = 100
    /// A stream that owes answers and gives none for so long is given up: its messages are sent again, under
    /// the same ids, on a new one.
    package var answerWithin = Duration.seconds(10)

    package init() {}
  }

  package struct Topics: Sendable, Equatable {
    package var count = 0
    /// Share of the messages that go to a topic, 0 to 1.
    package var share = 0.01
    /// Devices that have subscribed to each.
    package var subscribers = 10

    package init() {}
  }

  /// A fault that the server is asked for while the load lasts.
  package struct Fault: Sendable, Equatable {
    /// Seconds since the load began.
    package var at: Double
    package var kind: String
    /// The order, as the server's administration takes it: a JSON object.
    package var order: String

    package init(at: Double, kind: String, order: String) {
      self.at = at
      self.kind = kind
      self.order = order
    }
  }

  /// What must hold beside the ledger, else the test fails; nil is not checked.
  package struct Expectations: Sendable, Equatable {
    package var ackP99: Duration?
    package var deliveryP99: Duration?
    package var nacksMax: Int?
    package var perSecondMin: Double?

    package init() {}
  }

  package var name = "load"
  package var duration = Duration.seconds(10)
  /// How long is waited for what is under way when the load has ended.
  package var settle = Duration.seconds(30)
  package var seed: UInt64 = 1
  package var devices = Devices()
  package var senders = Senders()
  package var arrivals = Arrivals.closed
  package var sizes = PayloadSizes.fixed(600)
  package var topics = Topics()
  /// Upstream messages a second, of all devices together.
  package var upstreamRate = 0.0
  package var faults: [Fault] = []
  package var expect = Expectations()
  /// Leaves one device's deliveries uncounted: a ledger that does not object is of no use.
  package var isCanary = false

  package init() {}
}

/// How large the payloads are: bytes of names and values of `data`.
package enum PayloadSizes: Sendable, Equatable {
  package struct Share: Sendable, Equatable {
    package var bytes: Int
    package var weight: Double

    package init(bytes: Int, weight: Double) {
      self.bytes = bytes
      self.weight = weight
    }
  }

  case fixed(Int)
  /// Evenly between both, which are included.
  case between(Int, Int)
  case mixed([Share])

  /// Smallest payload: it holds the mark that the ledger goes by.
  package static let bytesMin = 64
  /// The protocol's limit.
  package static let bytesMax = 4_096

  /// A size, from 64 evenly drawn bits.
  package func bytes(_ draw: UInt64) -> Int {
    switch self {
    case .fixed(let bytes): return bytes
    case .between(let least, let most): return least + Int(draw % UInt64(max(1, most - least + 1)))
    case .mixed(let shares):
      let total = shares.reduce(0) { $0 + $1.weight }
      var rest = Double(draw >> 11) / Double(1 << 53) * total
      for share in shares {
        rest -= share.weight
        if rest < 0 { return share.bytes }
      }
      return shares.last?.bytes ?? Self.bytesMin
    }
  }

  /// The mean size.
  package var mean: Double {
    switch self {
    case .fixed(let bytes): return Double(bytes)
    case .between(let least, let most): return Double(least + most) / 2
    case .mixed(let shares):
      let total = shares.reduce(0) { $0 + $1.weight }
      return total > 0 ? shares.reduce(0) { $0 + Double($1.bytes) * $1.weight } / total : 0
    }
  }
}
