import Stores
import TLSCore

/// Why a server does not start: a sentence that says what to do.
public struct ServerFault: Error, Sendable, CustomStringConvertible {
  /// For people; no keys, no payload.
  public let description: String

  init(_ description: String) { self.description = description }

  init(_ error: any Error, _ configuration: ServerConfiguration) {
    switch error {
    case let fault as ServerFault: self = fault
    case StoreFault.locked(let path):
      description =
        "The data directory \(path) is in use by another weir process. Stop it, or start with another --data."
    case StoreFault.schemaTooNew(let found, let known) where configuration.store != nil:
      description =
        "The store \(configuration.shownStore ?? "") was written by a newer weir (schema \(found), this one knows \(known)). Install that version."
    case StoreFault.schemaTooNew(let found, let known):
      description =
        "The data directory was written by a newer weir (schema \(found), this one knows \(known)). Install that version."
    case StoreFault.refused(let detail) where configuration.store != nil:
      description = "The store \(configuration.shownStore ?? "") cannot be used: \(detail)"
    case StoreFault.unavailable(_, let detail) where configuration.store != nil:
      description =
        "The store \(configuration.shownStore ?? "") cannot be reached: \(detail). Is PostgreSQL running there, and does it take writes?"
    case let fault as StoreFault where configuration.store != nil:
      description = "The store \(configuration.shownStore ?? "") cannot be opened: \(fault)"
    case let fault as StoreFault:
      description = "The store in \(configuration.dataDirectory) cannot be opened: \(fault)"
    default: description = "\(error)"
    }
  }
}
