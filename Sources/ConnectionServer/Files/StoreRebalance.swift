import StorePostgres
import Stores

/// Spreads what several PostgreSQL hold over another number of them; no node may run meanwhile.
package struct StoreRebalance: Sendable {
  private let old: [String]
  private let new: [String]

  /// - Parameters:
  ///   - old: URLs in the order in which nodes named them so far.
  ///   - new: The same for from now on.
  package init(from old: [String], to new: [String]) {
    self.old = old
    self.new = new
  }

  /// - Parameter told: Called for each pair of databases between which devices went, with their number.
  /// - Returns: How many devices were moved.
  /// - Throws: ``ServerFault`` saying what to do.
  package func run(_ told: (String, String, Int) -> Void) throws -> Int {
    var configuration = ServerConfiguration()
    configuration.stores = new
    do {
      let rebalance = try PostgresRebalance(
        from: try old.map { try PostgresAddress($0) }, to: try new.map { try PostgresAddress($0) })
      return try rebalance.run(told)
    } catch { throw ServerFault(error, configuration) }
  }
}
