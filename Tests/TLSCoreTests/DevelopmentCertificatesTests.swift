import Foundation
import TLSCore
import Testing

/// Runs the `openssl` command, the judge that shares no code with us.
private func openssl(_ arguments: String...) throws -> (code: Int32, output: String) {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
  process.arguments = arguments
  let pipe = Pipe()
  process.standardOutput = pipe
  process.standardError = pipe
  process.standardInput = FileHandle.nullDevice
  try process.run()
  let output = pipe.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return (process.terminationStatus, String(decoding: output, as: UTF8.self))
}

private let now = Int64(Date().timeIntervalSince1970)

/// A directory that goes away with the test.
private final class Scratch {
  let path = NSTemporaryDirectory() + "weir-certificates-" + UUID().uuidString
  deinit { try? FileManager.default.removeItem(atPath: path) }

  func mode(_ name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int
  }
}

struct DevelopmentCertificatesTests {
  @Test func opensslVerifiesTheServerCertificateForEveryName() throws {
    let scratch = Scratch()
    try DevelopmentCertificates.make(names: ["weir.example", "10.1.2.3"], nowSeconds: now)
      .write(to: scratch.path)
    let (ca, server) = (scratch.path + "/ca.pem", scratch.path + "/server.pem")
    for name in DevelopmentCertificates.defaultNames + ["weir.example", "10.1.2.3"] {
      let kind =
        name.contains(":") || name.allSatisfy { $0.isNumber || $0 == "." } ? "-verify_ip" : "-verify_hostname"
      let (code, output) = try openssl(
        "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", ca, kind, name, server)
      #expect(code == 0, "\(name): \(output)")
    }
    let (refused, _) = try openssl("verify", "-CAfile", ca, "-verify_hostname", "example.com", server)
    #expect(refused != 0)
    let (unrelated, _) = try openssl("verify", "-no-CApath", "-no-CAstore", "-no-CAfile", server)
    #expect(unrelated != 0)
    withExtendedLifetime(scratch) {}
  }

  @Test func theCertificatesSayWhatTheyAreFor() throws {
    let scratch = Scratch()
    try DevelopmentCertificates.make(nowSeconds: now).write(to: scratch.path)
    let ca = try openssl("x509", "-in", scratch.path + "/ca.pem", "-noout", "-text").output
    #expect(ca.contains("CA:TRUE, pathlen:0"))
    #expect(ca.contains("Certificate Sign, CRL Sign"))
    #expect(ca.contains("ASN1 OID: prime256v1"))
    #expect(ca.contains("ecdsa-with-SHA256"))
    let server = try openssl("x509", "-in", scratch.path + "/server.pem", "-noout", "-text").output
    #expect(server.contains("CA:FALSE"))
    #expect(server.contains("TLS Web Server Authentication"))
    #expect(server.contains("Digital Signature"))
    let day = 86_400
    let path = scratch.path + "/server.pem"
    #expect(try openssl("x509", "-in", path, "-noout", "-checkend", "\(396 * day)").code == 0)
    #expect(try openssl("x509", "-in", path, "-noout", "-checkend", "\(398 * day)").code != 0)
  }

  @Test func opensslAcceptsTheKeyAndItBelongsToTheCertificate() throws {
    let scratch = Scratch()
    let made = try DevelopmentCertificates.make(nowSeconds: now)
    try made.write(to: scratch.path)
    #expect(made.serverKeyPEM.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
    let fromKey = try openssl("pkey", "-in", scratch.path + "/server.key", "-pubout")
    let fromCertificate = try openssl("x509", "-in", scratch.path + "/server.pem", "-noout", "-pubkey")
    #expect(fromKey.code == 0)
    #expect(fromKey.output == fromCertificate.output)
    #expect(made.serverPEM.components(separatedBy: "BEGIN CERTIFICATE").count == 2)
  }

  @Test func theKeyIsReadableByItsOwnerAlone() throws {
    let scratch = Scratch()
    try DevelopmentCertificates.make(nowSeconds: now).write(to: scratch.path)
    #expect(try scratch.mode("server.key") == 0o600)
    #expect(try scratch.mode("") == 0o700)
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path).sorted()
    #expect(names == ["ca.pem", "server.key", "server.pem"])
  }

  @Test func aUsableSetIsKeptAndAnyOtherIsReplaced() throws {
    let scratch = Scratch()
    let (first, isNew) = try DevelopmentCertificates.loadOrMake(in: scratch.path, nowSeconds: now)
    #expect(isNew)
    #expect(first.fault(nowSeconds: now) == nil)
    let again = try DevelopmentCertificates.loadOrMake(in: scratch.path, nowSeconds: now)
    #expect(again.certificates == first && !again.isNew)

    let later = now + 391 * 86_400
    #expect(first.fault(nowSeconds: later) == "server.pem is about to expire")
    let renewed = try DevelopmentCertificates.loadOrMake(in: scratch.path, nowSeconds: later)
    #expect(renewed.isNew && renewed.certificates.caPEM != first.caPEM)

    try FileManager.default.removeItem(atPath: scratch.path + "/server.key")
    #expect(try DevelopmentCertificates.loadOrMake(in: scratch.path, nowSeconds: now).isNew)
  }

  @Test func partsThatDoNotBelongTogetherAreRefused() throws {
    let (one, two) = (
      try DevelopmentCertificates.make(nowSeconds: now), try DevelopmentCertificates.make(nowSeconds: now)
    )
    var mixed = one
    mixed.serverKeyPEM = two.serverKeyPEM
    #expect(mixed.fault(nowSeconds: now) == "server.key is not the certificate's key")
    mixed = one
    mixed.caPEM = two.caPEM
    #expect(mixed.fault(nowSeconds: now) == "ca.pem did not sign server.pem")
    for broken in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
      mixed = one
      mixed.serverPEM = broken
      #expect(mixed.fault(nowSeconds: now)?.hasPrefix("OpenSSL refused") == true)
    }
    #expect(one.fault(nowSeconds: now) == nil)
  }

  @Test(arguments: ["", "a..b", "-a", "a,DNS:evil", "a b", "email:x", "*", "é.example", "1.2.3.4,IP:5.6.7.8"])
  func aNameThatIsNoHostOrAddressIsRefused(_ name: String) {
    #expect(throws: CryptoFault.badName(name)) {
      try DevelopmentCertificates.make(names: [name], nowSeconds: now)
    }
  }

  @Test func aDirectoryThatCannotBeMadeIsAnError() throws {
    let made = try DevelopmentCertificates.make(nowSeconds: now)
    #expect(throws: CryptoFault.self) { try made.write(to: "/dev/null/certificates") }
    #expect(throws: CryptoFault.self) { try DevelopmentCertificates.load(from: "/dev/null") }
    #expect(try DevelopmentCertificates.load(from: "/nowhere/at/all") == nil)
  }
}

struct SecretsTests {
  @Test func randomTextsHaveTheirLengthAndDiffer() throws {
    let texts = try (0..<100).map { _ in try Secrets.randomText(bytes: 16) }
    #expect(Set(texts).count == 100)
    #expect(texts.allSatisfy { $0.utf8.count == 22 })
    #expect(try Secrets.randomText(bytes: 32).utf8.count == 43)
    #expect(try Secrets.random(0).isEmpty)
  }

  @Test func base64URLIsThatOfFoundationWithTheURLAlphabet() throws {
    for count in 0..<50 {
      let bytes = try Secrets.random(count)
      let expected = Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        .replacing("=", with: "")
      #expect(Secrets.base64URL(bytes) == expected)
    }
  }

  @Test func theDigestIsSHA256() throws {
    // FIPS 180-2, appendix B.1, and the empty message.
    let hex = { (bytes: [UInt8]) in bytes.map { String(Int($0) + 256, radix: 16).suffix(2) }.joined() }
    #expect(
      hex(try Secrets.sha256(Array("abc".utf8)))
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(
      hex(try Secrets.sha256([])) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
  }

  @Test func equalityIsOfLengthAndEveryByte() {
    #expect(Secrets.areEqual([1, 2, 3], [1, 2, 3]))
    #expect(!Secrets.areEqual([1, 2, 3], [1, 2, 4]))
    #expect(!Secrets.areEqual([1, 2, 3], [1, 2]))
    #expect(Secrets.areEqual([], []))
  }

  @Test func opensslReadsTheRSAPairAndItSigns() throws {
    let scratch = Scratch()
    try PrivateFile.makeDirectory(scratch.path)
    let pair = try Secrets.rsaKeyPair()
    try PrivateFile.write(pair.privatePEM, to: scratch.path + "/rsa.key", mode: 0o600)
    let shown = try openssl("pkey", "-in", scratch.path + "/rsa.key", "-pubout", "-text")
    #expect(shown.code == 0)
    #expect(shown.output.contains("2048 bit"))
    #expect(shown.output.contains("65537"))
    #expect(shown.output.contains(pair.publicPEM))
    #expect(pair.privatePEM.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
  }
}
