import Glibc

extension DevelopmentCertificates {
  /// Writes `ca.pem`, `server.pem` (0644) and `server.key` (0600) into `directory`, which is made (0700) if it is
  /// missing.
  ///
  /// Each file is replaced whole. A crash between two of them leaves a set that ``fault(nowSeconds:)`` refuses, so
  /// that ``loadOrMake(in:names:nowSeconds:)`` makes a new one.
  package func write(to directory: String) throws(CryptoFault) {
    try PrivateFile.makeDirectory(directory)
    try PrivateFile.write(serverKeyPEM, to: directory + "/server.key", mode: 0o600)
    try PrivateFile.write(serverPEM, to: directory + "/server.pem", mode: 0o644)
    try PrivateFile.write(caPEM, to: directory + "/ca.pem", mode: 0o644)
  }

  /// The set in `directory`; nil if any of the three files is missing.
  package static func load(from directory: String) throws(CryptoFault) -> DevelopmentCertificates? {
    guard let ca = try PrivateFile.read(directory + "/ca.pem"),
      let server = try PrivateFile.read(directory + "/server.pem"),
      let key = try PrivateFile.read(directory + "/server.key")
    else { return nil }
    return DevelopmentCertificates(caPEM: ca, serverPEM: server, serverKeyPEM: key)
  }

  /// The set in `directory` if it can be used, else a new one, written there.
  ///
  /// - Returns: The set, and whether it is new.
  package static func loadOrMake(
    in directory: String, names: [String] = [], nowSeconds: Int64
  ) throws(CryptoFault) -> (certificates: DevelopmentCertificates, isNew: Bool) {
    if let found = try load(from: directory), found.fault(nowSeconds: nowSeconds) == nil {
      return (found, false)
    }
    let made = try make(names: names, nowSeconds: nowSeconds)
    try made.write(to: directory)
    return (made, true)
  }
}

/// Small files with secrets: replaced whole, and never readable by others for a moment.
package enum PrivateFile {
  /// Largest file that ``read(_:)`` takes.
  package static let bytesMax = 1 << 20

  /// Makes `path` and its parents, for the owner alone.
  package static func makeDirectory(_ path: String) throws(CryptoFault) {
    var made = path.hasPrefix("/") ? "/" : ""
    for part in path.split(separator: "/") {
      made += (made.isEmpty || made.hasSuffix("/") ? "" : "/") + part
      if mkdir(made, 0o700) != 0 && errno != EEXIST {
        throw .file(path: made, call: "make directory", errno: errno)
      }
    }
  }

  /// Writes a temporary file beside `path`, flushes it, and renames it to `path`.
  package static func write(_ text: String, to path: String, mode: UInt32) throws(CryptoFault) {
    let temporary = path + ".new"
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
    guard descriptor >= 0 else { throw .file(path: temporary, call: "create", errno: errno) }
    var fault: CryptoFault?
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty && fault == nil {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        fault = .file(path: temporary, call: "write", errno: errno)
      }
    }
    if fault == nil && fsync(descriptor) != 0 {
      fault = .file(path: temporary, call: "flush", errno: errno)
    }
    close(descriptor)
    if fault == nil && rename(temporary, path) != 0 {
      fault = .file(path: path, call: "replace", errno: errno)
    }
    if let fault {
      unlink(temporary)
      throw fault
    }
  }

  /// The text of a file; nil if there is none.
  package static func read(_ path: String) throws(CryptoFault) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw .file(path: path, call: "open", errno: errno)
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw .file(path: path, call: "read", errno: errno)
      }
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes.append(contentsOf: chunk.prefix(count))
      guard bytes.count <= bytesMax else { throw .file(path: path, call: "read whole", errno: EFBIG) }
    }
  }
}
