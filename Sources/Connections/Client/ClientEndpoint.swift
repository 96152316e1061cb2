package import DeliveryCore
package import TLSCore
package import XMPPCore

/// Where a client connects and as whom; shared by all its streams.
package struct ClientEndpoint: Sendable {
  package var host: String
  package var port: UInt16
  /// The name the certificate must carry; nil is ``host``.
  package var certificateName: String?
  /// Nil for plain TCP, which only tests use.
  package var context: TLSContext?
  /// Path of a WebSocket for XMPP (RFC 7395); nil is XMPP without one.
  package var webSocketPath: String?
  package var login: ClientLogin
  package var limits: StreamLimits
  /// For connecting, TLS, log-in and bind together.
  package var connectTimeout: Duration
  /// Bytes that may wait for a server that does not read; then the stream is lost.
  ///
  /// A window of messages of the largest size fits.
  package var backlogBytesMax = 16 << 20

  package init(
    host: String, port: UInt16, certificateName: String? = nil, context: TLSContext?,
    webSocketPath: String? = nil, login: ClientLogin, limits: StreamLimits = StreamLimits(),
    connectTimeout: Duration = .seconds(10)
  ) {
    self.host = host
    self.port = port
    self.certificateName = certificateName
    self.context = context
    self.webSocketPath = webSocketPath
    self.login = login
    self.limits = limits
    self.connectTimeout = connectTimeout
  }

  /// Makes the connection of one stream; for ``ClientLine``.
  package func makeConnection(_ stream: StreamNumber, _ line: ClientLine) -> any ClientConnection {
    XMPPClientConnection(self, stream: stream, on: line.loop, owner: line)
  }
}
