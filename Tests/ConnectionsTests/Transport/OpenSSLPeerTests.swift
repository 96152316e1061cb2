import Connections
import EventLoops
import Foundation
import TLSCore
import Testing

/// OpenSSL's command as an independent peer.
struct OpenSSLPeerTests {
  @Test(arguments: ["-tls1_2", "-tls1_3"])
  func theCommandConnectsVerifiesAndGetsItsEcho(_ version: String) throws {
    let bench = try ChannelBench(options: { $0.protocols = ["h2", "http/1.1"] }) { _ = EchoChannel($0) }
    let output = try run(
      [
        "s_client", "-connect", "127.0.0.1:\(bench.port)", "-servername", "push.example", version,
        "-CAfile", bench.certificates.authority, "-verify_return_error", "-verify_hostname", "push.example",
        "-alpn", "http/1.1", "-quiet", "-no_ign_eof",
      ], input: "hello from the command\n", until: "hello from the command\n")
    #expect(output.contains("hello from the command"))
  }

  @Test func theCommandSeesTheProtocolAndTheCipher() throws {
    let bench = try ChannelBench(options: { $0.protocols = ["h2", "http/1.1"] }) { _ = EchoChannel($0) }
    let output = try run(
      [
        "s_client", "-connect", "127.0.0.1:\(bench.port)", "-CAfile", bench.certificates.authority,
        "-alpn", "http/1.1,h2", "-brief",
      ], input: "", until: nil)
    #expect(output.contains("TLS_AES_128_GCM_SHA256"))
    #expect(output.contains("Verification: OK"))
  }

  @Test func anOfferOfUnknownProtocolsIsNotRefused() throws {
    let bench = try ChannelBench(options: { $0.protocols = ["h2"] }) { _ = EchoChannel($0) }
    let output = try run(
      [
        "s_client", "-connect", "127.0.0.1:\(bench.port)", "-CAfile", bench.certificates.authority,
        "-alpn", "xmpp-client,acme", "-quiet", "-no_ign_eof",
      ], input: "still here\n", until: "still here\n")
    #expect(output.contains("still here"))
  }

  /// Runs the command, feeds it, and reads until `mark` was seen (then its input is closed) or it ends.
  private func run(_ arguments: [String], input: String, until mark: String?) throws -> String {
    // The command may end before it has read its input.
    signal(SIGPIPE, SIG_IGN)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["timeout", "20", "openssl"] + arguments
    let stdin = Pipe()
    let stdout = Pipe()
    process.standardInput = stdin
    process.standardOutput = stdout
    process.standardError = stdout
    try process.run()
    try stdin.fileHandleForWriting.write(contentsOf: Data(input.utf8))
    if mark == nil { try stdin.fileHandleForWriting.close() }
    var output = ""
    while true {
      let more = stdout.fileHandleForReading.availableData
      if more.isEmpty { break }
      output += String(decoding: more, as: UTF8.self)
      if let mark, output.contains(mark) {
        try? stdin.fileHandleForWriting.close()
        break
      }
    }
    process.waitUntilExit()
    return output
  }
}
