/// What a store holds for one device at most.
package struct StoreLimits: Sendable, Hashable {
  /// Non-collapsible messages of a device; the row that would pass it discards them all.
  ///
  /// Default 100.
  package var storedPerDeviceMax: Int
  /// Distinct collapse keys of a device; beyond it the row with the lowest number ends as collapsed.
  ///
  /// Default 4.
  package var collapseKeysPerDeviceMax: Int

  /// Values below 1 count as 1.
  package init(storedPerDeviceMax: Int = 100, collapseKeysPerDeviceMax: Int = 4) {
    self.storedPerDeviceMax = max(1, storedPerDeviceMax)
    self.collapseKeysPerDeviceMax = max(1, collapseKeysPerDeviceMax)
  }
}

/// What a store counts rows of; the raw values are the names in ``AccountStore/counts(_:)``.
package enum StoreTable: String, Sendable, CaseIterable {
  case devices, registrations, messages, upstream, projects, keys
  /// One row a batch that carried entries.
  case journal
}
