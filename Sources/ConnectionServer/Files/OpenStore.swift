import Glibc
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
    guard let url = configuration.store else {
      store = try SQLiteStore(directory: directory, options: .init(limits: limits))
      bus = nil
      return
    }
    let address = try PostgresAddress(url)
    // Credentials and the node's name stand there.
    let lock = try DataDirectory(path: directory)
    do {
      let name = try Self.nodeName(in: directory)
      let shared = try PostgresStore(address, options: .init(limits: limits, nodeName: name)) {
        lock.unlock()
      }
      store = shared
      bus = shared.bus
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
    guard let store else { return nil }
    return (try? PostgresAddress(store).description) ?? "(not a valid URL)"
  }

  /// What is wrong with ``store``; nil when nothing is.
  package var storeProblem: String? {
    guard let store else { return nil }
    do {
      _ = try PostgresAddress(store)
      return nil
    } catch .refused(let detail) {
      return detail
    } catch {
      return "\(error)"
    }
  }
}
