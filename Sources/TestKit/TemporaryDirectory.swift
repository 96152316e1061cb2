import Foundation

/// A folder for one test: made under the system's temporary folder, removed with the object.
public final class TemporaryDirectory: Sendable {
  /// Without a slash at its end.
  public let path: String

  /// Makes the folder.
  public init() throws {
    path = FileManager.default.temporaryDirectory.path + "/weir-test-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
