import DeliveryCore
import PushModel
import Seams

/// What each device of a shard was sent and sent lately, as far as limits ask for it.
///
/// At the device's home shard, so there is no lock. Devices that were quiet for the longest of the lengths are
/// forgotten.
struct DeviceMeters {
  private struct Meter {
    var minute = RateWindow()
    var hour = RateWindow()
    var upstream = RateWindow()
    /// One an app with collapsible messages, at most ``appsMax``.
    var buckets: [(app: String, bucket: TokenBucket)] = []
  }

  private static let appsMax = 16
  private let limits: Limits
  private var meters: RateTable<DeviceNumber, Meter>

  /// Nil when no limit needs it, so that nothing is counted.
  init?(_ limits: Limits, entriesMax: Int, now: Moment) {
    guard
      limits.deviceMessagesPerMinuteMax != nil || limits.deviceMessagesPerHourMax != nil
        || limits.collapsibleBurstMax != nil || limits.upstreamPerDevicePerMinuteMax != nil
    else { return nil }
    self.limits = limits
    let burst = Duration.nanoseconds(
      limits.collapsibleRefill.ns &* Int64(limits.collapsibleBurstMax ?? 0))
    meters = RateTable(entriesMax: entriesMax, quietAfter: max(.seconds(3600), burst), now: now)
  }

  /// Counts a message for the device; how long it must wait when that is too many.
  mutating func message(for device: DeviceNumber, now: Moment) -> Duration? {
    let (minuteMax, hourMax) = (limits.deviceMessagesPerMinuteMax, limits.deviceMessagesPerHourMax)
    guard minuteMax != nil || hourMax != nil else { return nil }
    return meters.update(device, now: now, new: Meter()) { meter in
      var (minute, hour) = (meter.minute, meter.hour)
      let waits = [
        hourMax.flatMap { hour.take(max: $0, per: .seconds(3600), now: now) },
        minuteMax.flatMap { minute.take(max: $0, per: .seconds(60), now: now) },
      ]
      if let wait = waits.compactMap(\.self).max() { return wait }
      (meter.minute, meter.hour) = (minute, hour)
      return nil
    }
  }

  /// Takes a token for a collapsible message; how long until there is one.
  mutating func collapsible(for device: DeviceNumber, app: String, now: Moment) -> Duration? {
    guard let burst = limits.collapsibleBurstMax else { return nil }
    let refill = limits.collapsibleRefill
    return meters.update(device, now: now, new: Meter()) { meter in
      if let place = meter.buckets.firstIndex(where: { $0.app == app }) {
        return meter.buckets[place].bucket.take(burst: burst, refill: refill, now: now)
      }
      if meter.buckets.count >= Self.appsMax {
        meter.buckets.removeAll { $0.bucket.isFull(now) }
        if meter.buckets.count >= Self.appsMax { meter.buckets.removeFirst() }
      }
      var bucket = TokenBucket()
      let wait = bucket.take(burst: burst, refill: refill, now: now)
      meter.buckets.append((app, bucket))
      return wait
    }
  }

  /// Counts an upstream message of the device; how long it must wait when that is too many.
  mutating func upstream(of device: DeviceNumber, now: Moment) -> Duration? {
    guard let max = limits.upstreamPerDevicePerMinuteMax else { return nil }
    return meters.update(device, now: now, new: Meter()) {
      $0.upstream.take(max: max, per: .seconds(60), now: now)
    }
  }
}
