import PushModel
import Seams
import XMPPCore

extension StreamLimits {
  /// The stream's part of the protocol limits.
  init(_ limits: Limits) {
    self.init()
    stanzaBytesMax = limits.stanzaBytesMax
    stanzaBytesMaxBeforeLogin = limits.stanzaBeforeLoginBytesMax
    depthMax = limits.xmlDepthMax
    attributesMax = limits.xmlAttributesMax
    loginTriesMax = limits.loginFailuresPerStreamMax
    loginWithin = limits.loginDeadline
    keepaliveAfter = limits.keepaliveIdle
    deadAfter = limits.deadAfter
    pingAfter = .nanoseconds(limits.deadAfter.ns * 2 / 3)
  }
}
