package import Connections
package import DeliveryCore
package import TLSCore
import XMPPCore

extension Device.Trust {
  /// What TLS needs of it; many devices share one.
  ///
  /// - Throws: ``Device/ConnectError`` when the file cannot be read.
  package func makeContext(protocols: [String]) throws(Device.ConnectError) -> TLSContext {
    var options: TLSClientOptions
    switch self {
    case .system: options = TLSClientOptions()
    case .file(let path): options = TLSClientOptions(trust: .files([path]))
    }
    options.protocols = protocols
    do throws(TLSFault) {
      return try TLSContext(client: options)
    } catch {
      throw Device.ConnectError(wasRefused: false, detail: error.description)
    }
  }
}

extension Device.Configuration {
  /// What the machine behind a device goes by.
  package var machineSettings: SenderMachine.Settings {
    SenderMachine.Settings(
      windowMax: upstreamMax, messagesMax: upstreamMax,
      retry: RetryRules(totalTimeout: upstreamTimeout),
      backoff: Backoff.Settings(
        waitFirst: reconnectWaitFirst, waitMax: reconnectWaitMax, dropSpread: reconnectSpread),
      reconnects: reconnects)
  }

  /// - Parameter context: Shared by many devices; nil makes one.
  /// - Throws: ``Device/ConnectError`` when the certificates cannot be read or a setting is out of range.
  package func makeEndpoint(
    for credentials: Device.Credentials, context: TLSContext? = nil
  ) throws(Device.ConnectError) -> ClientEndpoint {
    guard let port = UInt16(exactly: port), port > 0 else {
      throw Device.ConnectError(wasRefused: false, detail: "not a port: \(port)")
    }
    let shared: TLSContext
    if let context {
      shared = context
    } else {
      shared = try trust.makeContext(protocols: [webSocketPath == nil ? "xmpp-client" : "http/1.1"])
    }
    var limits = StreamLimits()
    limits.loginWithin = connectTimeout
    limits.keepaliveAfter = keepaliveIdle
    limits.deadAfter = deadAfter
    limits.pingAfter = deadAfter * 2 / 3
    var login = ClientLogin(
      host: "fcm-xmpp.googleapis.com",
      credentials: PlainCredentials(
        authcid: credentials.deviceID, password: credentials.deviceSecret))
    // Over a WebSocket the steps are messages of their own, and `open` stands between them.
    login.isPipelined = webSocketPath == nil
    return ClientEndpoint(
      host: host, port: port, certificateName: serverName, context: shared,
      webSocketPath: webSocketPath, login: login, limits: limits, connectTimeout: connectTimeout)
  }
}
