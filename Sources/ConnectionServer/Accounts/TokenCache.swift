import Bytes
import PushModel
import Seams
import Stores

/// A registration that messages go to: one reference, since to copy its strings for each message costs more than to
/// find it.
final class Addressee: Sendable {
  let registration: Registration
  /// The registration's token, when messages were sent to an alias of it.
  let canonical: String?

  init(_ registration: Registration, canonical: String? = nil) {
    self.registration = registration
    self.canonical = canonical
  }
}

/// What a token means to a sender.
enum TokenMeaning: Sendable {
  case active(Addressee)
  case unregistered
  /// Never made here.
  case unknown
}

/// The tokens one loop met lately, so that the store is asked once for each.
///
/// Two generations bound it: what is not used while a generation fills up is forgotten. An entry is taken out
/// when its registration changes.
struct TokenCache {
  private var current: [Hash128: TokenMeaning] = [:]
  private var previous: [Hash128: TokenMeaning] = [:]
  private let generationMax: Int

  /// - Parameter entriesMax: At least 2; about 300 bytes each.
  init(entriesMax: Int) { generationMax = max(1, entriesMax / 2) }

  mutating func find(_ key: Hash128) -> TokenMeaning? {
    if let found = current[key] { return found }
    guard let found = previous[key] else { return nil }
    insert(key, found)
    return found
  }

  mutating func insert(_ key: Hash128, _ meaning: TokenMeaning) {
    if current.count >= generationMax {
      previous = current
      current = [:]
    }
    current[key] = meaning
  }

  mutating func remove(_ key: Hash128) {
    current[key] = nil
    previous[key] = nil
  }

  /// Forgets all: an alias may point at anything, and changes are rare.
  mutating func removeAll() {
    current = [:]
    previous = [:]
  }
}

/// Asks the store what tokens mean, and follows aliases.
struct TokenResolver: Sendable {
  let store: any Store

  func resolve(_ token: String, _ done: @escaping @Sendable (Result<TokenMeaning, StoreFault>) -> Void) {
    store.lookUp([token]) { result in
      switch result {
      case .failure(let fault): done(.failure(fault))
      case .success(let found): follow(found.first ?? nil, done)
      }
    }
  }

  private func follow(
    _ registration: Registration?, _ done: @escaping @Sendable (Result<TokenMeaning, StoreFault>) -> Void
  ) {
    guard let registration else { return done(.success(.unknown)) }
    switch registration.state {
    case .active: done(.success(.active(Addressee(registration))))
    case .unregistered: done(.success(.unregistered))
    case .alias(let canonical):
      store.lookUp([canonical]) { result in
        switch result {
        case .failure(let fault): done(.failure(fault))
        case .success(let found):
          // The store keeps aliases one step long.
          if let found = found.first ?? nil, case .active = found.state {
            done(.success(.active(Addressee(found, canonical: canonical))))
          } else {
            done(.success(.unregistered))
          }
        }
      }
    }
  }
}
