import Bytes
import PushModel
import Stores
import Telemetry

extension Shard {
  /// Keeps a message until the store has said what its token means; one question for all that wait for it.
  func lookUp(_ token: String, _ key: Hash128, _ waiting: WaitingSend) {
    if lookUps[key] != nil {
      lookUps[key]?.append(waiting)
      return
    }
    lookUps[key] = [waiting]
    let (post, index) = (post, index)
    TokenResolver(store: store).resolve(token) { result in
      post.post(.perform { $0.lookedUp(key, result) }, to: index)
    }
  }

  private func lookedUp(_ key: Hash128, _ result: Result<TokenMeaning, StoreFault>) {
    let waiting = lookUps.removeValue(forKey: key) ?? []
    let meaning = try? result.get()
    if let meaning { tokens.insert(key, meaning) } else { counters.storeFaults.add(1) }
    for send in waiting {
      senderStreams[send.stream.stream]?.resolved(send.slot, send.text, meaning)
    }
  }
}
