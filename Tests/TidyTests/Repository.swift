import Foundation

/// The tracked files of this repository, read for the house rules.
struct Repository {
  let root: URL

  /// The repository that this file is part of.
  static let own = Repository(
    root: URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent())

  /// Paths below the root: tracked, or new and not ignored.
  ///
  /// Without git (an unpacked archive), all files found.
  func files() throws -> [String] {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "git", "-C", root.path, "ls-files", "-z", "--cached", "--others", "--exclude-standard",
    ]
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    if process.terminationStatus == 0 {
      let listed = String(decoding: output, as: UTF8.self).split(separator: "\0").map(String.init)
      return listed.filter { FileManager.default.fileExists(atPath: root.path + "/" + $0) }
    }
    let skipped = [".build/", ".git/", ".venv", "artifacts/", "weir-data/"]
    return FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String }.filter { path in
      !skipped.contains { path.hasPrefix($0) }
    } ?? []
  }

  func swiftFiles(under folders: String...) throws -> [(path: String, text: String)] {
    try files().filter { path in
      path.hasSuffix(".swift") && folders.contains { path.hasPrefix($0 + "/") }
    }.map { ($0, try text($0)) }
  }

  func text(_ path: String) throws -> String {
    String(decoding: try Data(contentsOf: root.appendingPathComponent(path)), as: UTF8.self)
  }
}
