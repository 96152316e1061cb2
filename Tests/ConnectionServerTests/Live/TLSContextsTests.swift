import TestKit
import Testing

@testable import ConnectionServer
@testable import TLSCore

@Suite struct TLSContextsTests {
  @Test func recordsAreOpenSSLsWhereThatWasAskedForAlsoAfterAReload() throws {
    let directory = try TemporaryDirectory()
    _ = try DevelopmentCertificates.loadOrMake(in: directory.path, names: [], nowSeconds: 1_800_000_000)
    for isOpenSSLs in [false, true] {
      var configuration = ServerConfiguration()
      #expect(!configuration.opensslRecords)
      configuration.opensslRecords = isOpenSSLs
      configuration.certificate = (directory.path + "/server.pem", directory.path + "/server.key")
      let contexts = try TLSContexts(configuration, .none)
      for _ in 0..<2 {
        #expect(contexts.xmpp.makesRecords == !isOpenSSLs)
        #expect(contexts.https.makesRecords == !isOpenSSLs)
        try contexts.reload()
      }
    }
  }
}
