import Glibc
import Seams
import StorePostgres
import StoreSQLite
import Stores
import TLSCore

/// The store that a configuration names, and the way to other nodes when they share it.
struct OpenStore: Sendable {
  let store: any Store
  let bus: (any NodeBus)?

  init(_ configuration: ServerConfiguration, _ limits: StoreLimits) throws {
    let directory = configuration.dataDirectory
    guard !configuration.stores.isEmpty else {
      store = try SQLiteStore(directory: directory, options: .init(limits: limits))
      bus = nil
      return
    }
    let addresses = try configuration.stores.map { try PostgresAddress($0) }
    // Credentials and the node's name stand there.
    let lock = try DataDirectory(path: directory)
    do {
      let name = try Self.nodeName(in: directory)
      let left = Guarded(addresses.count)
      var parts: [PostgresStore] = []
      do {
        for (index, address) in addresses.enumerated() {
          let options = PostgresStore.Options(
            limits: limits, nodeName: name, place: .init(index: index, count: addresses.count))
          parts.append(
            try PostgresStore(address, options: options) {
              let isLast = left.withLock { left in
                left -= 1
                return left == 0
              }
              if isLast { lock.unlock() }
            })
        }
      } catch {
        for part in parts { part.close {} }
        throw error
      }
      if parts.count == 1 {
        store = parts[0]
        bus = parts[0].bus
      } else {
        let bus = SplitBus(parts.map(\.bus))
        store = SplitStore(parts, bus: bus, limits: limits)
        self.bus = bus
      }
    } catch {
      lock.unlock()
      throw error
    }
  }

  func close() async { await store.close() }

  /// The name that the node keeps over restarts: the host's, and something that no other data directory has.
  private static func nodeName(in directory: String) throws -> String {
    let path = directory + "/node-name"
    if let name = try PrivateFile.read(path)?.trimmed, !name.isEmpty { return name }
    var host = [CChar](repeating: 0, count: 256)
    gethostname(&host, host.count - 1)
    let bytes = host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    let name = String(decoding: bytes, as: UTF8.self) + "-" + (try Secrets.random(6)).hexText
    try PrivateFile.write(name + "\n", to: path, mode: 0o600)
    return name
  }
}

extension ServerConfiguration {
  /// The store as it may be shown: without passwords.
  package var shownStore: String? {
    guard !stores.isEmpty else { return nil }
    return stores.map { (try? PostgresAddress($0).description) ?? "(not a valid URL)" }.joined(separator: " ")
  }

  /// What is wrong with ``store``; nil when nothing is.
  package var storeProblem: String? {
    do {
      for store in stores { _ = try PostgresAddress(store) }
      guard Set(stores).count == stores.count else { return "one database is named twice" }
      return nil
    } catch .refused(let detail) {
      return detail
    } catch {
      return "\(error)"
    }
  }
}
