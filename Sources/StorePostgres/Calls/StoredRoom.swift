import PushModel
import Seams
import Stores

/// How many more messages each device certainly has room for, so that the cap costs a count now and then and not with
/// every message.
///
/// A count that the database gave tells how many rows may follow it uncounted: all that are left to the cap while one node
/// is alone, and a fourth of its share of them beside others, whose rows it does not hear of. So a device may come to
/// hold rows beyond its cap, fewer than a fourth of it; the next one counted discards them as any overflow.
final class StoredRoom: Sendable {
  private struct Device {
    /// Rows sent for it since it is known here.
    var sent: UInt32 = 0
    /// How many more may be sent uncounted; below 0 the next one is counted.
    var left: Int32 = -1
  }
  private struct State {
    var devices: [DeviceNumber: Device] = [:]
    var nodes = 1
  }

  /// What the database counts for one batch.
  struct Plan: Sendable {
    /// For each row, whether its device is to be looked at.
    var isCounted: [Bool]
    /// How many rows of each such device had been sent with the batch.
    fileprivate var sent: [DeviceNumber: UInt32] = [:]
  }

  private let cap: Int
  private let devicesMax: Int
  private let state = Guarded(State())

  init(cap: Int, devicesMax: Int = 65_536) {
    self.cap = cap
    self.devicesMax = devicesMax
  }

  /// How many nodes live, this one among them.
  func share(among nodes: Int) {
    state.withLock { state in
      // What the old number allowed is too much once there are more.
      if nodes > state.nodes { state.devices = [:] }
      state.nodes = max(1, nodes)
    }
  }

  /// Decides on a batch, and takes all of it for sent.
  ///
  /// Rows with a collapse key always count: their rules look at what is stored.
  func plan(_ rows: [StoredMessage]) -> Plan {
    state.withLock { state in
      if state.devices.count > devicesMax { state.devices = [:] }
      var plan = Plan(isCounted: [])
      plan.isCounted.reserveCapacity(rows.count)
      for row in rows {
        guard row.collapse == nil else {
          plan.isCounted.append(true)
          continue
        }
        var device = state.devices[row.device] ?? Device()
        device.sent &+= 1
        if device.left >= 0 { device.left -= 1 }
        state.devices[row.device] = device
        let isCounted = !row.live && device.left < 0
        plan.isCounted.append(isCounted)
        if isCounted || plan.sent[row.device] != nil { plan.sent[row.device] = device.sent }
      }
      return plan
    }
  }

  /// Takes in what the database counted: the rows without a key that each device has, those of the batch included.
  func note(_ counts: [(device: DeviceNumber, stored: Int)], for plan: Plan) {
    guard !counts.isEmpty else { return }
    state.withLock { state in
      for (number, stored) in counts {
        guard let then = plan.sent[number], var device = state.devices[number] else { continue }
        let room = cap - stored
        let allowed = state.nodes == 1 ? room : room / (4 * state.nodes)
        device.left = Int32(clamping: max(-1, allowed - Int(device.sent &- then)))
        state.devices[number] = device
      }
    }
  }
}
