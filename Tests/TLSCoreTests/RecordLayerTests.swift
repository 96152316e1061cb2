import Bytes
import COpenSSL
import Testing

@testable import TLSCore

/// Weir's own records against OpenSSL's, and what a peer may not send.
struct RecordLayerTests {
  let certificates: TestCertificates

  init() throws { certificates = try TestCertificates.shared.get() }

  private func server(_ change: (inout TLSServerOptions) -> Void = { _ in }) throws -> TLSContext {
    var options = TLSServerOptions(
      certificateChainFile: certificates.chain, privateKeyFile: certificates.key)
    change(&options)
    return try TLSContext(server: options)
  }

  /// A client whose records OpenSSL makes, unless `change` says otherwise.
  private func client(_ change: (inout TLSClientOptions) -> Void = { _ in }) throws -> TLSContext {
    var options = TLSClientOptions(trust: .files([certificates.authority]))
    options.makesRecords = false
    change(&options)
    return try TLSContext(client: options)
  }

  static let suites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]

  @Test(arguments: suites)
  func aServerSpeaksWithOpenSSLAndHoldsNothingOfIt(_ suite: String) throws {
    let pair = try MemoryPair(client { $0.suites = suite }, server())
    #expect(pair.server.ssl == nil)
    #expect(pair.client.ssl != nil)
    #expect(pair.server.cipher == suite)
    var sent: [UInt8] = []
    for count in [1, 15, 16, 17, 600, 16_383, 16_384, 16_385, 70_000, 300_000] {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ count) }
      sent += bytes
      pair.clientSends(bytes)
      pair.serverSends(bytes)
      pair.pump()
    }
    #expect(isSame(pair.toServer, sent))
    #expect(isSame(pair.toClient, sent))
    #expect(pair.isOpen)
    #expect(pair.client.ssl != nil)
  }

  @Test func whatOpenSSLToldOfSecretsIsErasedOnBothSides() throws {
    let scratch = TLSScratch()
    let client = try TLSSession(client: client { $0.makesRecords = true }, host: "localhost")
    let server = try TLSSession(server: server())
    let (near, far) = (try #require(client.openSSL), try #require(server.openSSL))
    func flight() -> [UInt8] {
      defer { scratch.output.removeAll() }
      return Array(scratch.output.bytes)
    }
    func give(_ bytes: [UInt8], to session: TLSSession) -> [UInt8] {
      bytes.withUnsafeBytes { session.receive($0, scratch) { _ in } }
      return flight()
    }
    client.start(scratch)
    let answer = give(flight(), to: server)
    #expect(!far.secrets.server.isEmpty, "told with the server's first flight")
    let finish = give(answer, to: client)
    #expect(!near.secrets.client.isEmpty)
    let tickets = give(finish, to: server)
    #expect(server.openSSL == nil)
    #expect(far.secrets.client.isEmpty && far.secrets.server.isEmpty)
    _ = give(tickets, to: client)
    [UInt8](repeating: 1, count: 10).withUnsafeBytes { _ = server.send($0, scratch) }
    _ = give(flight(), to: client)
    #expect(client.openSSL == nil)
    #expect(near.secrets.client.isEmpty && near.secrets.server.isEmpty)
  }

  @Test(arguments: suites, [1, 6, 100_000])
  func aClientSpeaksWithOpenSSLAndHoldsNothingOfItAfterTheFirstData(_ suite: String, _ step: Int) throws {
    let context = try client {
      $0.makesRecords = true
      $0.suites = suite
    }
    let server = try server { $0.makesRecords = false }
    for turn in 0..<3 {
      let pair = try MemoryPair(context, server)
      #expect(pair.client.isResumed == (turn > 0), "its ticket was taken")
      pair.stepBytes = step
      pair.clientSends([UInt8](repeating: 1, count: 20_000))
      pair.pump()
      #expect(pair.client.ssl != nil)
      pair.serverSends([UInt8](repeating: 2, count: 40_000))
      pair.pump()
      // It may have got more than one record at once, and then waits for a moment between two.
      pair.serverSends([3])
      pair.pump()
      #expect(pair.client.ssl == nil)
      for count in [1, 600, 16_384, 50_000] {
        pair.clientSends([UInt8](repeating: 4, count: count))
        pair.serverSends([UInt8](repeating: 5, count: count))
        pair.pump()
      }
      #expect(pair.isOpen)
      #expect(pair.toServer.count == 20_000 + 66_985)
      #expect(pair.toClient.count == 40_001 + 66_985)
      #expect(pair.client.version == .v13)
      #expect(pair.client.cipher == suite)
      #expect(pair.client.isResumed == (turn > 0))
    }
  }

  @Test func aClientWhoseKeysWereChangedBeforeStaysWithOpenSSL() throws {
    for changer in ["client", "server"] {
      let pair = try MemoryPair(client { $0.makesRecords = true }, server { $0.makesRecords = false })
      let ssl = try #require(changer == "client" ? pair.client.ssl : pair.server.ssl)
      #expect(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
      pair.clientSends([1])
      pair.serverSends([1])
      pair.pump()
      pair.clientSends([2])
      pair.serverSends([2])
      pair.pump()
      #expect(pair.client.ssl != nil)
      #expect(pair.isOpen)
      #expect(pair.toServer == [1, 2])
      #expect(pair.toClient == [1, 2])
    }
  }

  @Test func aServerMayChangeKeysAndGiveTicketsLater() throws {
    let pair = try MemoryPair(client { $0.makesRecords = true }, server { $0.makesRecords = false })
    let ssl = try #require(pair.server.ssl)
    var sent: [UInt8] = []
    for turn in UInt8(0)..<20 {
      if turn > 2, turn % 3 == 0 { #expect(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1) }
      if turn > 2, turn % 3 == 1 { #expect(SSL_new_session_ticket(ssl) == 1) }
      pair.serverSends([turn])
      pair.pump()
      pair.clientSends([turn])
      pair.pump()
      sent.append(turn)
    }
    #expect(pair.client.ssl == nil)
    #expect(pair.isOpen)
    #expect(pair.toClient == sent)
    #expect(pair.toServer == sent)
  }

  @Test func withTheSwitchOffOpenSSLStays() throws {
    let pair = try MemoryPair(client(), server { $0.makesRecords = false })
    #expect(pair.server.ssl != nil)
    #expect(try MemoryPair(client { $0.versionMax = .v12 }, server()).server.ssl != nil)
  }

  @Test(arguments: 0...4)
  func ticketsCountAsRecords(_ tickets: Int) throws {
    let (client, server) = (try client(), try server { $0.tickets = tickets })
    for turn in 0..<3 {
      let pair = try MemoryPair(client, server)
      #expect(pair.server.isResumed == (tickets > 0 && turn > 0))
      #expect(pair.server.ssl == nil)
      pair.serverSends(Array("hello".utf8))
      pair.pump()
      #expect(pair.toClient == Array("hello".utf8))
    }
  }

  @Test func whatWasAgreedOnIsStillKnown() throws {
    let pair = try MemoryPair(
      client { $0.protocols = ["h2"] }, server { $0.protocols = ["h2"] }, host: "push.example")
    #expect(pair.server.version == .v13)
    #expect(pair.server.cipher == "TLS_AES_128_GCM_SHA256")
    #expect(pair.server.applicationProtocol == "h2")
    #expect(pair.server.serverName == "push.example")
    #expect(!pair.server.isResumed)
  }

  @Test(arguments: suites, [SSL_KEY_UPDATE_REQUESTED, SSL_KEY_UPDATE_NOT_REQUESTED])
  func aClientMayChangeKeys(_ suite: String, _ kind: CInt) throws {
    let pair = try MemoryPair(client { $0.suites = suite }, server())
    pair.stepBytes = 7
    for turn in UInt8(0)..<40 {
      let ssl = try #require(pair.client.ssl)
      #expect(SSL_key_update(ssl, kind) == 1)
      pair.clientSends([turn, 1])
      pair.pump()
      pair.serverSends([turn, 2])
      pair.pump()
    }
    #expect(pair.isOpen)
    #expect(pair.toServer == (UInt8(0)..<40).flatMap { [$0, 1] })
    #expect(pair.toClient == (UInt8(0)..<40).flatMap { [$0, 2] })
  }

  @Test(arguments: [16, 512, 4_096, 16_384])
  func aClientMayPadItsRecords(_ block: Int) throws {
    let context = try client()
    #expect(SSL_CTX_set_block_padding(context.pointer, block) == 1)
    let pair = try MemoryPair(context, server())
    let bytes = (0..<40_000).map { UInt8(truncatingIfNeeded: $0) }
    pair.clientSends([])
    pair.clientSends([0, 0, 0])
    pair.clientSends(bytes)
    pair.pump()
    #expect(isSame(pair.toServer, [0, 0, 0] + bytes))
  }

  @Test(arguments: 0...4)
  func aClientMayAskForSmallRecords(_ asked: Int) throws {
    let context = try client()
    if asked > 0 {
      #expect(SSL_CTX_set_tlsext_max_fragment_length(context.pointer, UInt8(asked)) == 1)
    }
    let server = try server()
    // A resumed session remembers it.
    for _ in 0..<2 {
      let pair = try MemoryPair(context, server)
      [UInt8](repeating: 6, count: 20_000).withUnsafeBytes { _ = pair.server.send($0, pair.scratch) }
      var tracker = RecordTracker()
      tracker.feed(pair.scratch.output.bytes)
      pair.scratch.output.removeAll()
      let most = asked == 0 ? 16_384 : 256 << asked
      #expect(tracker.count == UInt64((20_000 + most - 1) / most))
    }
    let pair = try MemoryPair(context, server)
    pair.serverSends([UInt8](repeating: 6, count: 20_000))
    pair.pump()
    #expect(pair.isOpen)
    #expect(pair.toClient.count == 20_000)
  }

  @Test func aRecordOfTheServersThatWasAlteredIsToldToIt() throws {
    let pair = try MemoryPair(client(), server())
    var record: [UInt8] = []
    [1, 2, 3].withUnsafeBytes { _ = pair.server.send($0, pair.scratch) }
    record = Array(pair.scratch.output.bytes)
    pair.scratch.output.removeAll()
    record[7] ^= 0x40
    record.withUnsafeBytes { pair.client.receive($0, pair.scratch) { _ in } }
    let alert = Array(pair.scratch.output.bytes)
    pair.scratch.output.removeAll()
    alert.withUnsafeBytes { pair.server.receive($0, pair.scratch) { _ in } }
    #expect(pair.server.state == .failed(.alert("bad record mac")))
  }

  /// The same calls with records of its own and with OpenSSL's have the same effect.
  @Test(arguments: UInt64(1)...40)
  func nobodySeesADifferenceToOpenSSL(_ seed: UInt64) throws {
    func run(client isClientsOwn: Bool, server isServersOwn: Bool) throws -> [String] {
      var random = seed &* 0x9E37_79B9_7F4A_7C15
      func next(_ bound: Int) -> Int {
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(random >> 33) % bound
      }
      let pair = try MemoryPair(
        client { $0.makesRecords = isClientsOwn }, server { $0.makesRecords = isServersOwn })
      var log: [String] = []
      for _ in 0..<60 {
        pair.stepBytes = [1, 5, 100, 20_000][next(4)]
        let bytes = [UInt8](repeating: UInt8(next(256)), count: [0, 1, 900, 17_000][next(4)])
        switch next(30) {
        case 0: pair.clientCloses()
        case 1: pair.server.closeNotify(pair.scratch)
        case 2:
          if let ssl = pair.client.ssl { SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) }
          // OpenSSL does not close while it owes the message.
          pair.clientSends([7])
        case 3...15: pair.clientSends(bytes)
        default: pair.serverSends(bytes)
        }
        pair.serverSends([])
        pair.pump()
        log.append("\(pair.client.state) \(pair.server.state) \(pair.toServer.count) \(pair.toClient.count)")
      }
      return log
    }
    let reference = try run(client: false, server: false)
    #expect(try run(client: false, server: true) == reference)
    #expect(try run(client: true, server: false) == reference)
    #expect(try run(client: true, server: true) == reference)
  }
}

/// A peer that seals whatever it likes, against a layer.
struct RecordRefusalTests {
  /// A server's layer, and the ciphers of its client.
  private final class Wire {
    let layer: RecordLayer
    var sealing: RecordCipher
    var opening: RecordCipher
    let scratch = TLSScratch()
    var received: [UInt8] = []
    var ending: RecordLayer.Ending?

    init(takesTickets: Bool = false, sealedMax: UInt64? = nil) throws {
      let suite = CipherSuite.aes128
      let client = try #require(TrafficSecret([UInt8](repeating: 1, count: 32), of: suite))
      let server = try #require(TrafficSecret([UInt8](repeating: 2, count: 32), of: suite))
      layer = try #require(
        RecordLayer(
          sending: server, sent: 0, receiving: client, takesTickets: takesTickets, sealedMax: sealedMax))
      guard let sealing = RecordCipher.make(client, isSealing: true),
        let opening = RecordCipher.make(server, isSealing: false)
      else { throw CryptoFault.library(call: "RecordCipher", reason: "no cipher") }
      self.sealing = sealing
      self.opening = opening
    }

    func changeKey() { if !sealing.update() { Issue.record("no new key") } }

    func record(_ kind: RecordCipher.Content, _ content: [UInt8]) -> [UInt8] {
      let output = OutBuffer()
      let isSealed = content.withUnsafeBytes { sealing.seal(kind, $0, into: output) }
      #expect(isSealed)
      return Array(output.bytes)
    }

    func say(_ bytes: [UInt8]) {
      guard ending == nil else { return }
      ending = bytes.withUnsafeBytes { layer.receive($0, scratch) { received.append(contentsOf: $0) } }
    }

    func say(_ kind: RecordCipher.Content, _ content: [UInt8]) { say(record(kind, content)) }

    /// Kinds and contents of the layer's records since the last call.
    func heard() -> [(kind: UInt8, content: [UInt8])] {
      var heard: [(kind: UInt8, content: [UInt8])] = []
      var rest = Array(scratch.output.bytes)
      scratch.output.removeAll()
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 20_000, alignment: 16)
      defer { room.deallocate() }
      while rest.count >= 5 {
        let count = 5 + Int(rest[3]) << 8 + Int(rest[4])
        guard let opened = Array(rest.prefix(count)).withUnsafeBytes({ opening.open($0, into: room) }) else {
          Issue.record("a record of the layer cannot be read")
          return heard
        }
        let content = Array(room.prefix(opened))
        heard.append((content.last ?? 0, content.dropLast()))
        rest.removeFirst(count)
        if heard.last?.kind == 22, !opening.update() { Issue.record("no new key") }
      }
      return heard
    }

    /// Whether the layer has ended with this alert and reason.
    func refused(_ alert: CInt, _ words: String, line: Int = #line) {
      let heard = heard()
      #expect(
        heard.count == 1 && heard[0].kind == 21 && heard[0].content == [2, UInt8(alert)], "line \(line)")
      guard case .failed(.corrupted(let reason)) = ending else {
        Issue.record("line \(line): \(String(describing: ending))")
        return
      }
      #expect(reason.contains(words), "line \(line)")
    }
  }

  @Test func keysAreThoseOfTheRFC() throws {
    // RFC 8448 §3, "derive write traffic keys for application data" of the server.
    let secret: [UInt8] = [
      0xa1, 0x1a, 0xf9, 0xf0, 0x55, 0x31, 0xf8, 0x56, 0xad, 0x47, 0x11, 0x6b, 0x45, 0xa9, 0x50, 0x32,
      0x82, 0x04, 0xb4, 0xf4, 0x4b, 0xfb, 0x6b, 0x3a, 0x4b, 0x4f, 0x1f, 0x3f, 0xcb, 0x63, 0x16, 0x43,
    ]
    let traffic = try #require(TrafficSecret(secret, of: .aes128))
    #expect(
      traffic.key() == [
        0x9f, 0x02, 0x28, 0x3b, 0x6c, 0x9c, 0x07, 0xef, 0xc2, 0x6b, 0xb9, 0xf2, 0xac, 0x92, 0xe3, 0x56,
      ])
    #expect(traffic.iv() == [0xcf, 0x78, 0x2b, 0x88, 0xdd, 0x83, 0x54, 0x9a, 0xad, 0xf1, 0xe9, 0x84])
    #expect(TrafficSecret(Array(secret.dropLast()), of: .aes128) == nil)
    #expect(TrafficSecret(secret, of: .aes256) == nil)
  }

  @Test func recordsAreCountedHoweverTheyCome() {
    let bytes: [UInt8] =
      [23, 3, 3, 0, 2, 9, 9, 23, 3, 3, 0, 0, 22, 3, 1, 1, 0] + [UInt8](repeating: 0, count: 256)
    for step in [1, 2, 3, 5, 7, 12, 100, 1_000] {
      var tracker = RecordTracker()
      for start in stride(from: 0, to: bytes.count - 1, by: step) {
        Array(bytes[start..<min(start + step, bytes.count - 1)]).withUnsafeBytes { tracker.feed($0) }
      }
      #expect(tracker.count == 2)
      #expect(!tracker.isBetweenRecords)
      [UInt8(0)].withUnsafeBytes { tracker.feed($0) }
      #expect(tracker.count == 3)
      #expect(tracker.isBetweenRecords)
    }
  }

  @Test func whatCameBeforeAFaultCounts() throws {
    let wire = try Wire()
    var altered = wire.record(.application, [1, 2, 3])
    altered += wire.record(.application, [4, 5, 6])
    altered[altered.count - 1] ^= 1
    wire.say(altered)
    #expect(wire.received == [1, 2, 3])
    wire.refused(SSL_AD_BAD_RECORD_MAC, "altered")
  }

  @Test func aRecordMustNotComeAgainNorInAnotherOrder() throws {
    let again = try Wire()
    let record = again.record(.application, [1])
    again.say(record)
    again.say(record)
    #expect(again.received == [1])
    again.refused(SSL_AD_BAD_RECORD_MAC, "altered")
    let swapped = try Wire()
    let first = swapped.record(.application, [1])
    swapped.say(swapped.record(.application, [2]) + first)
    #expect(swapped.received.isEmpty)
    swapped.refused(SSL_AD_BAD_RECORD_MAC, "altered")
  }

  @Test(arguments: [20, 21, 22, 24, 0, 255] as [UInt8])
  func nothingUnprotectedIsTaken(_ type: UInt8) throws {
    let wire = try Wire()
    wire.say([type, 3, 3, 0, 2, 1, 0])
    wire.refused(SSL3_AD_UNEXPECTED_MESSAGE, "not what may come now")
  }

  @Test func theVersionInAHeaderIsPartOfWhatIsProtectedAndNothingElse() throws {
    let wire = try Wire()
    var record = wire.record(.application, [1])
    record[2] = 1
    wire.say(record)
    wire.refused(SSL_AD_BAD_RECORD_MAC, "altered")
  }

  @Test func lengthsAreBounded() throws {
    let long = try Wire()
    long.say([23, 3, 3, 0x41, 0x01])
    long.refused(SSL_AD_RECORD_OVERFLOW, "longer")
    let short = try Wire()
    short.say([23, 3, 3, 0, 16] + [UInt8](repeating: 0, count: 16))
    short.refused(SSL_AD_BAD_RECORD_MAC, "altered")
    let most = try Wire()
    most.say(.application, [UInt8](repeating: 7, count: 16_384))
    #expect(most.received.count == 16_384)
    #expect(most.ending == nil)
    let more = try Wire()
    more.say(.application, [UInt8](repeating: 7, count: 16_385))
    #expect(more.received.isEmpty)
    more.refused(SSL_AD_RECORD_OVERFLOW, "longer")
  }

  @Test func aKeyUpdateIsTakenWholeAndAlone() throws {
    let wire = try Wire()
    wire.say(.handshake, [24, 0])
    wire.say(.handshake, [0, 1, 1])
    wire.changeKey()
    #expect(wire.heard().map(\.content) == [[24, 0, 0, 1, 0]])
    wire.say(.application, [9])
    #expect(wire.received == [9])
    #expect(wire.ending == nil)
    for (content, alert, words): ([UInt8], CInt, String) in [
      ([], SSL3_AD_UNEXPECTED_MESSAGE, "not what may come now"),
      ([1, 0, 0, 0], SSL3_AD_UNEXPECTED_MESSAGE, "not what may come now"),
      ([24, 0, 0, 1, 0, 24, 0, 0, 1, 0], SSL3_AD_UNEXPECTED_MESSAGE, "not what may come now"),
      ([24, 0, 0, 2, 0], SSL_AD_DECODE_ERROR, "another length"),
      ([24, 0, 0, 1, 2], SSL3_AD_ILLEGAL_PARAMETER, "neither"),
    ] {
      let wire = try Wire()
      wire.say(.handshake, content)
      wire.refused(alert, words)
    }
    let mixed = try Wire()
    mixed.say(.handshake, [24, 0])
    mixed.say(.application, [1])
    #expect(mixed.received.isEmpty)
    mixed.refused(SSL3_AD_UNEXPECTED_MESSAGE, "not what may come now")
  }

  @Test func ticketsArePassedOverByAClientInAnyPieces() throws {
    let ticket: [UInt8] = [4, 0, 1, 4] + [UInt8](repeating: 9, count: 260)
    let wire = try Wire(takesTickets: true)
    wire.say(.handshake, Array(ticket[..<3]))
    wire.say(.handshake, Array(ticket[3..<100]))
    wire.say(.handshake, Array(ticket[100...]) + ticket + ticket[..<50])
    wire.say(.handshake, Array(ticket[50...]) + [24, 0, 0, 1, 1])
    wire.changeKey()
    wire.say(.application, [7])
    #expect(wire.received == [7])
    #expect(wire.ending == nil)
    #expect(wire.heard().map(\.content) == [[24, 0, 0, 1, 0]])
    let long = try Wire(takesTickets: true)
    long.say(.handshake, [4, 0xFF, 0, 0])
    long.refused(SSL_AD_DECODE_ERROR, "another length")
    let server = try Wire()
    server.say(.handshake, ticket)
    server.refused(SSL3_AD_UNEXPECTED_MESSAGE, "not what may come now")
    let other = try Wire(takesTickets: true)
    other.say(.handshake, [13, 0, 0, 0])
    other.refused(SSL3_AD_UNEXPECTED_MESSAGE, "not what may come now")
  }

  @Test func afterItsCloseTheLayerSaysNothingMore() throws {
    let wire = try Wire()
    wire.layer.closeNotify(into: wire.scratch.output)
    #expect(wire.heard().map(\.content) == [[1, 0]])
    wire.say(.handshake, [24, 0, 0, 1, 1])
    wire.changeKey()
    wire.say(.application, [5])
    #expect(wire.received == [5])
    #expect(wire.heard().isEmpty)
  }

  @Test func alertsEndTheOtherSide() throws {
    let closed = try Wire()
    closed.say(
      closed.record(.application, [1]) + closed.record(.alert, [1, 90]) + closed.record(.alert, [1, 0]))
    #expect(closed.received == [1])
    guard case .closed = closed.ending else {
      Issue.record("\(String(describing: closed.ending))")
      return
    }
    for (number, words): (UInt8, String) in [
      (20, "bad record mac"), (80, "internal error"), (200, "unknown"),
    ] {
      let wire = try Wire()
      // Its level means nothing (RFC 8446 §6).
      wire.say(.alert, [1, number])
      guard case .failed(.alert(words)) = wire.ending else {
        Issue.record("\(number): \(String(describing: wire.ending))")
        continue
      }
      #expect(wire.heard().isEmpty)
    }
    let malformed = try Wire()
    malformed.say(.alert, [1, 0, 0])
    malformed.refused(SSL_AD_DECODE_ERROR, "another length")
  }

  @Test func recordsThatBringNothingAreBounded() throws {
    let wire = try Wire()
    for _ in 0..<RecordLayer.idleRecordsMax { wire.say(.application, []) }
    wire.say(.application, [1])
    for _ in 0..<RecordLayer.idleRecordsMax { wire.say(.application, []) }
    #expect(wire.ending == nil)
    wire.say(.application, [])
    wire.refused(SSL3_AD_UNEXPECTED_MESSAGE, "not what may come now")
  }

  @Test func aWornKeyIsChanged() throws {
    let wire = try Wire(sealedMax: 3)
    for turn in UInt8(0)..<10 {
      let isTaken = [turn].withUnsafeBytes { wire.layer.send($0, into: wire.scratch.output) }
      #expect(isTaken)
    }
    let heard = wire.heard()
    #expect(heard.filter { $0.kind == 23 }.map(\.content) == (0..<10).map { [UInt8($0)] })
    #expect(heard.map(\.kind) == [23, 23, 23, 22, 23, 23, 23, 22, 23, 23, 23, 22, 23])
  }
}
