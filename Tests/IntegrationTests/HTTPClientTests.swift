import ConnectionServer
import TestKit
import Testing

/// HTTP clients that others wrote, against a live server.
@Suite(.serialized) struct HTTPClientTests {
  @Test func clientsOfHTTPv1AndLegacyHTTPWorkAgainstTheServer() async throws {
    try await TestServer.run { try await ClientScript.sdk.run(against: $0, within: .seconds(240)) }
  }

  @Test func pyfcm1SendsWithAServerKey() async throws {
    try await TestServer.run { try await ClientScript.pyfcm1.run(against: $0) }
  }

  @Test func curlMeetsTheDocumentedBodiesOverBothVersionsOfHTTP() async throws {
    try await TestServer.run { try await ClientScript.curl.run(against: $0, within: .seconds(240)) }
  }

  @Test func requestsMadeOfTheDescriptionMeetNoFaultOfTheServer() async throws {
    try await TestServer.run {
      $0.acceptsAnyBearer = true
    } _: {
      try await ClientScript.schemathesis.run(against: $0, within: .seconds(240))
    }
  }
}
