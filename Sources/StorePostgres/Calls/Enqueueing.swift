import PushModel
import Seams
import Stores

/// Rows for `weir_enqueue`, and what it says became of them.
struct Enqueueing {
  /// A row's share of a fan-out: the registration it is for.
  struct Share {
    var registration: RegistrationNumber
    var job: MessageNumber
  }

  static func parameters(
    _ rows: [StoredMessage], shares: [Share]? = nil, counted: [Bool], writer: Int64, limits: StoreLimits,
    now: WallTime
  ) -> Parameters {
    let bytes = rows.reduce(0) { $0 + $1.body.count + $1.receipt.count + 200 }
    var parameters = Parameters(capacity: bytes)
    parameters.int(writer)
    parameters.int(now.ms)
    parameters.int4(limits.storedPerDeviceMax)
    parameters.int4(limits.storedPerConnectedDeviceMax)
    parameters.int4(limits.collapseKeysPerDeviceMax)
    parameters.ints(rows) { $0.device.value }
    parameters.ints(rows) { $0.number.column }
    parameters.ints(rows) { $0.expires.ms }
    parameters.ints(rows) { $0.sender.value }
    parameters.texts(rows) { $0.app }
    parameters.keys(rows) { $0.key }
    parameters.blobs(rows, text: \.collapse)
    parameters.bools(rows) { $0.highPriority }
    parameters.bools(rows) { $0.live }
    // The body of a share is made when it is read.
    parameters.blobs(rows) { shares == nil ? $0.body : [] }
    parameters.blobs(rows) { $0.receipt }
    if let shares {
      parameters.ints(shares) { $0.registration.value }
      parameters.ints(zip(rows, shares).map { $0 }) { row, share in
        share.job == row.number ? 0 : share.job.column
      }
    } else {
      parameters.null()
      parameters.null()
    }
    parameters.bools(counted) { $0 }
    return parameters
  }

  /// - Parameter room: Is told of what was counted for `plan`.
  static func outcome(
    _ lines: Rows, of rows: [StoredMessage], _ plan: StoredRoom.Plan, _ room: StoredRoom
  ) throws(PostgresFailure) -> WriteOutcome {
    var outcome = WriteOutcome()
    var counts: [(device: DeviceNumber, stored: Int)] = []
    defer { room.note(counts, for: plan) }
    outcome.enqueue = Array(repeating: .stored, count: rows.count)
    for line in 0..<lines.count {
      let what = lines.int(line, 1)
      if what == 20 {
        counts.append((DeviceNumber(lines.int(line, 2)), Int(lines.int(line, 3))))
        continue
      }
      if what >= 10 {
        guard let state = MessageState(rawValue: UInt8(truncatingIfNeeded: what - 10)) else {
          throw .corrupt("weir_enqueue: an unknown state")
        }
        outcome.ended.append(try lines.ended(line, from: 2, as: state))
        continue
      }
      let place = Int(lines.int(line, 0)) - 1
      guard rows.indices.contains(place) else { throw .corrupt("weir_enqueue: a place that is none") }
      switch what {
      case 0: outcome.enqueue[place] = .duplicate
      case 1: outcome.enqueue[place] = .unknownDevice
      case 2: outcome.enqueue[place] = .overflowed
      default: throw .corrupt("weir_enqueue: an unknown verdict")
      }
    }
    return outcome
  }
}

extension Rows {
  /// Reads `number, sender, key, job` of a device's row.
  func ended(
    _ row: Int, of device: DeviceNumber, as state: MessageState
  ) throws(PostgresFailure) -> WriteOutcome.Ended {
    WriteOutcome.Ended(
      number: MessageNumber(column: int(row, 0)), device: device, sender: SenderID(int(row, 1)),
      key: try key(row, 2, table: "message"), state: state,
      job: optionalInt(row, 3).map { MessageNumber(column: $0) })
  }

  /// Reads `device, number, sender, key, job` from a column on.
  func ended(
    _ row: Int, from first: Int32, as state: MessageState
  ) throws(PostgresFailure) -> WriteOutcome.Ended {
    WriteOutcome.Ended(
      number: MessageNumber(column: int(row, first + 1)), device: DeviceNumber(int(row, first)),
      sender: SenderID(int(row, first + 2)), key: try key(row, first + 3, table: "message"), state: state,
      job: optionalInt(row, first + 4).map { MessageNumber(column: $0) })
  }
}
