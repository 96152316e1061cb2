package import Connections
import DeliveryCore
import TLSCore
import XMPPCore

extension StreamClient.Configuration {
  /// What the machine behind a client goes by.
  var machineSettings: SenderMachine.Settings {
    SenderMachine.Settings(
      streams: streams, windowMax: window, messagesMax: heldMax, ackTimeout: ackTimeout,
      retry: RetryRules(
        triesMax: retry.triesMax, waitMin: retry.waitMin, waitMax: retry.waitMax,
        rateLimitedWaitMin: retry.rateLimitedWaitMin, rateLimitedWaitMax: retry.rateLimitedWaitMax,
        totalTimeout: retry.totalTimeout, repeatsOverdue: retry.repeatsOverdue,
        repeatsAfterClose: retry.resendsAfterLoss),
      backoff: Backoff.Settings(waitFirst: reconnect.waitFirst, waitMax: reconnect.waitMax),
      reconnects: reconnect.isEnabled, stopsWhenRefused: reconnect.stopsWhenRefused)
  }

  /// Messages in the client's hands at most.
  var heldMax: Int { max(messagesMax, min(max(1, streams), 1_000) * min(max(1, window), 100_000)) }

  /// The server as connections need it.
  ///
  /// - Throws: ``StreamClient/ConnectError`` when the certificates cannot be read or a setting is out of range.
  package func makeEndpoint() throws(StreamClient.ConnectError) -> ClientEndpoint {
    guard let port = UInt16(exactly: port), port > 0 else {
      throw StreamClient.ConnectError(wasRefused: false, detail: "not a port: \(port)")
    }
    let trust: TLSClientOptions.Trust
    switch self.trust {
    case .system: trust = .system
    case .file(let path): trust = .files([path])
    }
    let context: TLSContext
    do throws(TLSFault) {
      var options = TLSClientOptions(trust: trust)
      options.protocols = [webSocketPath == nil ? "xmpp-client" : "http/1.1"]
      context = try TLSContext(client: options)
    } catch {
      throw StreamClient.ConnectError(wasRefused: false, detail: error.description)
    }
    var limits = StreamLimits()
    limits.loginWithin = connectTimeout
    limits.keepaliveAfter = keepaliveIdle
    limits.deadAfter = deadAfter
    limits.pingAfter = deadAfter * 2 / 3
    return ClientEndpoint(
      host: host, port: port, certificateName: serverName, context: context,
      webSocketPath: webSocketPath,
      login: ClientLogin(
        host: "fcm-xmpp.googleapis.com",
        credentials: PlainCredentials(authcid: senderID + "@fcm.googleapis.com", password: serverKey),
        window: window > SenderMachine.Settings.windowOfProtocol ? min(window, 100_000) : nil),
      limits: limits, connectTimeout: connectTimeout)
  }
}
