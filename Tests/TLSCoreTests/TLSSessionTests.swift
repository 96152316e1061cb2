import Bytes
import TLSCore
import Testing

struct TLSSessionTests {
  let certificates: TestCertificates

  init() throws { certificates = try TestCertificates.shared.get() }

  private func serverContext(_ change: (inout TLSServerOptions) -> Void = { _ in }) throws -> TLSContext {
    var options = TLSServerOptions(
      certificateChainFile: certificates.chain, privateKeyFile: certificates.key)
    change(&options)
    return try TLSContext(server: options)
  }

  private func clientContext(_ change: (inout TLSClientOptions) -> Void = { _ in }) throws -> TLSContext {
    var options = TLSClientOptions(trust: .files([certificates.authority]))
    change(&options)
    return try TLSContext(client: options)
  }

  @Test(arguments: [TLSVersion.v12, .v13])
  func bothSidesAgreeAndBytesPass(_ version: TLSVersion) throws {
    let pair = try MemoryPair(
      clientContext {
        $0.versionMin = version
        $0.versionMax = version
      }, serverContext())
    #expect(pair.isOpen)
    #expect(pair.openings.sorted() == ["client", "server"])
    #expect(pair.client.version == version)
    #expect(pair.server.version == version)
    #expect(pair.server.cipher?.contains("AES") == true)
    #expect(pair.server.cipher?.contains("128") == true)
    let big = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) }
    pair.clientSends(big)
    pair.serverSends(Array("hello".utf8))
    pair.pump()
    #expect(isSame(pair.toServer, big))
    #expect(pair.toClient == Array("hello".utf8))
  }

  @Test(arguments: [TLSVersion.v12, .v13])
  func bytesMayComeOneByOne(_ version: TLSVersion) throws {
    let pair = try MemoryPair(clientContext { $0.versionMax = version }, serverContext())
    pair.stepBytes = 1
    let bytes = [UInt8](repeating: 9, count: 20_000)
    pair.clientSends(bytes)
    pair.pump()
    #expect(isSame(pair.toServer, bytes))
    let slow = try TLSSession(server: serverContext())
    let client = try TLSSession(client: clientContext(), host: "localhost")
    let scratch = TLSScratch()
    client.start(scratch)
    let hello = Array(scratch.output.bytes)
    scratch.output.removeAll()
    for byte in hello {
      [byte].withUnsafeBytes { slow.receive($0, scratch) { _ in } }
    }
    #expect(slow.state == .handshaking)
    #expect(scratch.output.count > 500)
  }

  @Test func theServerPicksItsBestProtocol() throws {
    let server = try serverContext { $0.protocols = ["h2", "http/1.1"] }
    let pair = try MemoryPair(clientContext { $0.protocols = ["http/1.1", "h2"] }, server)
    #expect(pair.server.applicationProtocol == "h2")
    #expect(pair.client.applicationProtocol == "h2")
  }

  @Test func anUnknownProtocolOfferIsServedWithoutOne() throws {
    let server = try serverContext { $0.protocols = ["h2"] }
    let pair = try MemoryPair(clientContext { $0.protocols = ["imap", "x"] }, server)
    #expect(pair.isOpen)
    #expect(pair.server.applicationProtocol == nil)
    #expect(pair.client.applicationProtocol == nil)
    let without = try MemoryPair(clientContext { $0.protocols = ["imap"] }, serverContext())
    #expect(without.isOpen)
  }

  @Test func theServerLearnsTheNameAskedForAndNoNameForAnAddress() throws {
    let named = try MemoryPair(clientContext(), serverContext(), host: "push.example")
    #expect(named.server.serverName == "push.example")
    let numbered = try MemoryPair(clientContext(), serverContext(), host: "127.0.0.1")
    #expect(numbered.isOpen)
    #expect(numbered.server.serverName == nil)
  }

  @Test(arguments: [TLSVersion.v12, .v13])
  func aSecondConnectionIsResumedAlsoAfterACut(_ version: TLSVersion) throws {
    let client = try clientContext { $0.versionMax = version }
    let server = try serverContext()
    var first: MemoryPair? = try MemoryPair(client, server)
    #expect(first?.client.isResumed == false)
    first = nil
    for _ in 0..<3 {
      let next = try MemoryPair(client, server)
      #expect(next.isOpen)
      #expect(next.client.isResumed)
      #expect(next.server.isResumed)
    }
    let elsewhere = try MemoryPair(client, server, host: "push.example")
    #expect(!elsewhere.client.isResumed)
  }

  @Test func aServerThatWasStartedAgainResumesWhatItHandedOutBefore() throws {
    let client = try clientContext()
    _ = try MemoryPair(client, serverContext())
    #expect(try MemoryPair(client, serverContext()).client.isResumed)
    // TLS 1.2 makes no new key when it resumes: a key on no disk must be needed to read what was said.
    let old = try clientContext { $0.versionMax = .v12 }
    _ = try MemoryPair(old, serverContext())
    let again = try MemoryPair(old, serverContext())
    #expect(again.isOpen)
    #expect(!again.client.isResumed)
  }

  @Test func aChangedCertificateKeepsTicketsGood() throws {
    let client = try clientContext()
    let box = TLSContextBox(try serverContext())
    _ = try MemoryPair(client, box.current)
    let next = TLSServerOptions(
      certificateChainFile: certificates.nextChain, privateKeyFile: certificates.nextKey)
    box.replace(with: try TLSContext(server: next, previous: box.current))
    #expect(try MemoryPair(client, box.current).client.isResumed)
    // A server of another key knows nothing of them.
    let stranger = try clientContext()
    _ = try MemoryPair(stranger, serverContext())
    let fresh = try MemoryPair(stranger, TLSContext(server: next))
    #expect(fresh.isOpen)
    #expect(!fresh.client.isResumed)
  }

  @Test func anUnknownAuthorityIsRefusedByTheClientAndToldToTheServer() throws {
    let pair = try MemoryPair(
      clientContext { $0.trust = .files([certificates.otherAuthority]) }, serverContext())
    guard case .failed(.untrusted(let reason)) = pair.client.state else {
      Issue.record("\(pair.client.state)")
      return
    }
    #expect(reason.contains("unable to get local issuer"))
    #expect(pair.server.state == .failed(.alert("unknown CA")))
  }

  @Test func aCertificateForAnotherHostIsRefused() throws {
    let named = try MemoryPair(clientContext(), serverContext(), host: "other.example")
    #expect(named.client.state == .failed(.wrongHost("other.example")))
    let numbered = try MemoryPair(clientContext(), serverContext(), host: "127.0.0.2")
    #expect(numbered.client.state == .failed(.wrongHost("127.0.0.2")))
  }

  @Test func aClientThatTrustsAnyoneConnectsAnywhere() throws {
    let pair = try MemoryPair(clientContext { $0.trust = .anyone }, serverContext(), host: "other.example")
    #expect(pair.isOpen)
  }

  @Test func noCommonVersionIsToldToBoth() throws {
    let pair = try MemoryPair(
      clientContext { $0.versionMax = .v12 }, serverContext { $0.versionMin = .v13 })
    guard case .failed(.version) = pair.server.state, case .failed(.version) = pair.client.state else {
      Issue.record("\(pair.server.state) \(pair.client.state)")
      return
    }
  }

  @Test(arguments: [
    ("GET / HTTP/1.1\r\n\r\n", TLSFault.Plaintext.http), ("<stream:stream>", .xml), ("\u{01}?", .other),
  ])
  func plaintextIsSaidToBePlaintext(_ text: String, _ kind: TLSFault.Plaintext) throws {
    let scratch = TLSScratch()
    let session = try TLSSession(server: serverContext())
    Array(text.utf8).withUnsafeBytes { session.receive($0, scratch) { _ in } }
    #expect(session.state == .failed(.plaintext(kind)))
    #expect(TLSFault.plaintext(kind).description.contains("this port speaks TLS"))
    let reply = TLSFault.plaintext(kind).plaintextReply
    #expect((reply != nil) == (kind == .http))
    if let text = reply?.description, let body = text.split(separator: "\r\n\r\n").last {
      #expect(text.contains("Content-Length: \(body.utf8.count)\r\n"))
    }
  }

  @Test func aServerThatAnswersInPlaintextIsToldApart() throws {
    let scratch = TLSScratch()
    let session = try TLSSession(client: clientContext(), host: "localhost")
    session.start(scratch)
    Array("<?xml".utf8).withUnsafeBytes { session.receive($0, scratch) { _ in } }
    #expect(session.state == .failed(.plaintext(.xml)))
  }

  @Test func anAlteredRecordEndsTheSession() throws {
    let pair = try MemoryPair(clientContext(), serverContext())
    pair.tamper = { bytes in
      var bytes = bytes
      if bytes.count > 30 { bytes[20] ^= 1 }
      return bytes
    }
    pair.clientSends([UInt8](repeating: 1, count: 100))
    pair.pump()
    guard case .failed(.corrupted) = pair.server.state else {
      Issue.record("\(pair.server.state)")
      return
    }
    #expect(pair.client.state == .failed(.alert("bad record mac")))
    pair.serverSends([1])
    pair.pump()
    #expect(pair.toClient.isEmpty)
  }

  @Test func nonsenseInTheHandshakeIsAFaultWhateverItIs() throws {
    let context = try serverContext()
    for length in [0, 1, 64, 16_384, 40_000, 65_535] {
      let scratch = TLSScratch()
      let session = try TLSSession(server: context)
      var bytes: [UInt8] = [0x16, 3, 1, UInt8(length >> 8), UInt8(truncatingIfNeeded: length)]
      bytes += (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 89) }
      bytes.withUnsafeBytes { session.receive($0, scratch) { _ in } }
      if length > 1 {
        guard case .failed = session.state else {
          Issue.record("\(length): \(session.state)")
          continue
        }
      }
    }
  }

  @Test func closeNotifyIsSeenOnceAndTheOtherWayStaysOpen() throws {
    let pair = try MemoryPair(clientContext(), serverContext())
    pair.clientCloses()
    pair.clientCloses()
    pair.pump()
    #expect(pair.server.state == .peerClosed)
    pair.serverSends(Array("last".utf8))
    pair.pump()
    #expect(pair.toClient == Array("last".utf8))
    pair.clientSends(Array("late".utf8))
    pair.pump()
    #expect(pair.toServer.isEmpty)
  }

  @Test func anEndWithoutCloseNotifyIsAFault() throws {
    let pair = try MemoryPair(clientContext(), serverContext())
    pair.server.inputEnded()
    #expect(pair.server.state == .failed(.truncated))
    pair.clientCloses()
    let closed = try MemoryPair(clientContext(), serverContext())
    closed.clientCloses()
    closed.pump()
    closed.server.inputEnded()
    #expect(closed.server.state == .peerClosed)
  }

  @Test func nothingCanBeSentDuringTheHandshake() throws {
    let session = try TLSSession(server: serverContext())
    let scratch = TLSScratch()
    let isTaken = [UInt8(1)].withUnsafeBytes { session.send($0, scratch) }
    #expect(!isTaken)
    #expect(scratch.output.isEmpty)
  }

  @Test func wrongFilesAreNamed() throws {
    #expect(throws: TLSFault.self) { try serverContext { $0.certificateChainFile = "/nowhere.pem" } }
    #expect(throws: TLSFault.self) { try serverContext { $0.privateKeyFile = "/nowhere.key" } }
    #expect(throws: TLSFault.self) {
      try serverContext { $0.privateKeyFile = certificates.directory + "/ca.key" }
    }
    #expect(throws: TLSFault.self) { try clientContext { $0.trust = .files(["/nowhere.pem"]) } }
    #expect(throws: TLSFault.self) { try serverContext { $0.protocols = [""] } }
    #expect(throws: TLSFault.self) {
      try serverContext {
        $0.versionMin = .v13; $0.versionMax = .v12
      }
    }
    do throws(TLSFault) {
      _ = try TLSContext(client: TLSClientOptions(trust: .files(["/nowhere.pem"])))
    } catch {
      #expect(error.description.contains("/nowhere.pem"))
    }
  }

  @Test func aContextServesItsOwnSideOnly() throws {
    let client = try clientContext()
    let server = try serverContext()
    #expect(throws: TLSFault.self) { try TLSSession(server: client) }
    #expect(throws: TLSFault.self) { try TLSSession(client: server, host: "localhost") }
    #expect(throws: TLSFault.self) { try TLSSession(client: client, host: "") }
    #expect(throws: TLSFault.self) { try TLSSession(client: client, host: "a\0b") }
  }
}
