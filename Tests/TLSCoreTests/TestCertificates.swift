import Foundation

/// Throw-away certificates made with the `openssl` command, once a test process.
struct TestCertificates {
  let directory: String
  var authority: String { directory + "/ca.pem" }
  var otherAuthority: String { directory + "/other-ca.pem" }
  var chain: String { directory + "/server.pem" }
  var key: String { directory + "/server.key" }
  /// The same names, with a key of its own.
  var nextChain: String { directory + "/next.pem" }
  var nextKey: String { directory + "/next.key" }

  /// For localhost, 127.0.0.1 and push.example.
  static let shared = Result { try TestCertificates() }

  private init() throws {
    directory = NSTemporaryDirectory() + "tls-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    for (name, subject) in [("ca", "/CN=Test CA"), ("other-ca", "/CN=Other CA")] {
      try openssl([
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", subject, "-keyout", "\(name).key", "-out", "\(name).pem",
      ])
    }
    try "subjectAltName=DNS:localhost,DNS:push.example,IP:127.0.0.1\n"
      .write(toFile: directory + "/extensions", atomically: true, encoding: .utf8)
    for name in ["server", "next"] {
      try openssl([
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=push.example",
        "-keyout", "\(name).key", "-out", "\(name).csr",
      ])
      try openssl([
        "x509", "-req", "-in", "\(name).csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days",
        "2", "-extfile", "extensions", "-out", "\(name).pem",
      ])
    }
  }

  private func openssl(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw CocoaError(.executableLoad) }
  }
}
