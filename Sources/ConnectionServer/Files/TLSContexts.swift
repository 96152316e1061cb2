import Synchronization
import TLSCore

/// The TLS contexts of the listeners, exchanged whole when the certificates are read again.
final class TLSContexts: Sendable {
  private struct Pair {
    var xmpp: TLSContext
    var https: TLSContext
  }
  private let chain: String
  private let key: String
  private let makesRecords: Bool
  private let pair: Mutex<Pair>

  init(_ configuration: ServerConfiguration, _ credentials: Credentials) throws {
    chain = configuration.certificate?.chain ?? credentials.serverCertificatePath
    key = configuration.certificate?.key ?? credentials.serverKeyPath
    makesRecords = !configuration.opensslRecords
    pair = Mutex(try Self.make(chain, key, makesRecords))
  }

  private static func make(
    _ chain: String, _ key: String, _ makesRecords: Bool, previous: Pair? = nil
  ) throws -> Pair {
    var options = TLSServerOptions(certificateChainFile: chain, privateKeyFile: key)
    options.makesRecords = makesRecords
    options.protocols = ["xmpp-client"]
    let xmpp = try TLSContext(server: options, previous: previous?.xmpp)
    options.protocols = ["h2", "http/1.1"]
    return Pair(xmpp: xmpp, https: try TLSContext(server: options, previous: previous?.https))
  }

  /// For connections accepted from now on.
  func reload() throws {
    let new = try Self.make(chain, key, makesRecords, previous: pair.withLock { $0 })
    pair.withLock { $0 = new }
  }

  var xmpp: TLSContext { pair.withLock { $0.xmpp } }
  var https: TLSContext { pair.withLock { $0.https } }
}
