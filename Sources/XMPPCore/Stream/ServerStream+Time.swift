package import Bytes
package import Seams

extension ServerStream {
  /// When ``deadlineReached(now:output:)`` is to be called, unless something happens first.
  ///
  /// May move later with every byte, so a driver may keep an earlier timer and ask again when it fires.
  package var nextDeadline: Moment? {
    switch state {
    case .ended: return nil
    case .bound:
      let silence = lastInput + (isPinged ? limits.deadAfter : limits.pingAfter)
      return min(silence, lastOutput + limits.keepaliveAfter)
    case .awaitingHeader, .awaitingLogin, .awaitingResponse, .awaitingVerdict, .awaitingSecondHeader,
      .awaitingBind, .awaitingClose:
      return deadline
    }
  }

  /// Does what is due at `now`; nothing when it is too early.
  package func deadlineReached(now: Moment, output: inout ByteWriter) -> ServerEvent? {
    guard let due = nextDeadline, due <= now else { return nil }
    switch state {
    case .bound:
      return whileBound(now, &output)
    case .awaitingClose:
      sendEnd(&output)
      return .ended(.closed)
    case .awaitingHeader, .awaitingLogin, .awaitingResponse, .awaitingVerdict, .awaitingSecondHeader,
      .awaitingBind:
      fail(.connectionTimeout, output: &output)
      return .ended(.loginOverdue)
    case .ended:
      return nil
    }
  }

  private func whileBound(_ now: Moment, _ output: inout ByteWriter) -> ServerEvent? {
    if lastInput + limits.deadAfter <= now {
      fail(.connectionTimeout, output: &output)
      return .ended(.silent)
    }
    if !isPinged, lastInput + limits.pingAfter <= now {
      isPinged = true
      pings &+= 1
      output.appendPing(number: pings, from: domain, to: jid?.description)
      lastOutput = now
    }
    if lastOutput + limits.keepaliveAfter <= now {
      output.append(" ")
      lastOutput = now
    }
    return nil
  }
}
