import PushModel
import Seams

/// What a shard asked the store to read and got no answer to.
enum FailedRead: Hashable {
  case backlog(DeviceNumber)
  case lease(SenderID)
}

extension Shard {
  /// Reads again after a pause: nothing else may ever happen to that device or sender.
  func readAgainLater(_ read: FailedRead) {
    guard !failedReads.contains(where: { $0.read == read }) else { return }
    failedReads.append((now + tuning.writeRetryPause, read))
  }

  func lookAtFailedReads() {
    while let first = failedReads.first, first.due <= now {
      failedReads.removeFirst()
      switch first.read {
      case .backlog(let device): if let slot = devices[device] { pump(slot) }
      case .lease(let sender): if let desk = desks[sender] { perform([], desk) }
      }
    }
  }
}
