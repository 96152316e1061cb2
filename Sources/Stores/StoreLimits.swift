/// What a store holds for one device, registration or group at most.
package struct StoreLimits: Sendable, Hashable {
  /// Non-collapsible messages of a device; the row that would pass it discards them all.
  ///
  /// Default 100.
  package var storedPerDeviceMax: Int
  /// Distinct collapse keys of a device; beyond it the row with the lowest number ends as collapsed.
  ///
  /// Default 4.
  package var collapseKeysPerDeviceMax: Int
  /// Messages of a device whose stream is held, from which a share of a fan-out counts as one for a device that is
  /// away; until then it is live.
  ///
  /// Default 10,000.
  package var storedPerConnectedDeviceMax: Int
  /// Topics of a registration.
  ///
  /// Default 2,000.
  package var topicsPerTokenMax: Int
  /// Members of a device group.
  ///
  /// Default 20.
  package var groupMembersMax: Int

  /// Values below 1 count as 1.
  package init(
    storedPerDeviceMax: Int = 100, collapseKeysPerDeviceMax: Int = 4, topicsPerTokenMax: Int = 2_000,
    groupMembersMax: Int = 20, storedPerConnectedDeviceMax: Int = 10_000
  ) {
    self.storedPerConnectedDeviceMax = max(1, storedPerConnectedDeviceMax)
    self.storedPerDeviceMax = max(1, storedPerDeviceMax)
    self.collapseKeysPerDeviceMax = max(1, collapseKeysPerDeviceMax)
    self.topicsPerTokenMax = max(1, topicsPerTokenMax)
    self.groupMembersMax = max(1, groupMembersMax)
  }
}

/// What a store counts rows of; the raw values are the names in ``AccountStore/counts(_:)``.
package enum StoreTable: String, Sendable, CaseIterable {
  case devices, registrations, messages, upstream, projects, keys
  case topics, subscriptions, fanouts, groups
  /// One row a batch that carried entries.
  case journal
}
