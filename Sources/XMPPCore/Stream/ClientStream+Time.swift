package import Bytes
package import Seams

extension ClientStream {
  /// When ``deadlineReached(now:output:)`` is to be called; may move later with every byte.
  package var nextDeadline: Moment? {
    switch state {
    case .idle, .ended: return nil
    case .ready:
      let silence = lastInput + (isPinged ? limits.deadAfter : limits.pingAfter)
      return min(silence, lastOutput + limits.keepaliveAfter)
    case .awaitingHeader, .awaitingFeatures, .awaitingSuccess, .awaitingSecondHeader,
      .awaitingSecondFeatures, .awaitingBinding, .awaitingSession, .awaitingEnd:
      return deadline
    }
  }

  /// Does what is due at `now`; nothing when it is too early.
  package func deadlineReached(now: Moment, output: inout ByteWriter) -> ClientEvent? {
    guard let due = nextDeadline, due <= now else { return nil }
    switch state {
    case .idle, .ended:
      return nil
    case .awaitingEnd:
      return end(.closed, &output)
    case .ready:
      if lastInput + limits.deadAfter <= now { return end(.failed(.silent), &output) }
      if !isPinged, lastInput + limits.pingAfter <= now {
        isPinged = true
        pings &+= 1
        output.appendPing(number: pings, from: nil, to: nil)
        lastOutput = now
      }
      if lastOutput + limits.keepaliveAfter <= now {
        output.append(" ")
        lastOutput = now
      }
      return nil
    case .awaitingHeader, .awaitingFeatures, .awaitingSuccess, .awaitingSecondHeader,
      .awaitingSecondFeatures, .awaitingBinding, .awaitingSession:
      return end(.failed(.overdue(state)), &output)
    }
  }
}
