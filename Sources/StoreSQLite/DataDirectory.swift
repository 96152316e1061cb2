import CLinux
import Glibc
package import Stores

/// The data directory, held against other processes by a lock on its file `lock`.
///
/// The kernel lets the lock go when the process ends, however it ends. The file holds the process id, for
/// people.
package final class DataDirectory: Sendable {
  let path: String
  private let lockFile: Int32

  /// Makes the directory when it is missing (for its owner alone).
  package init(path: String) throws(StoreFault) {
    if mkdir(path, 0o700) != 0, errno != EEXIST {
      throw .unavailable(outcomeUnknown: false, detail: "making the data directory: errno \(errno)")
    }
    let file = shim_open_lock_file(path + "/lock")
    guard file >= 0 else {
      throw .unavailable(outcomeUnknown: false, detail: "opening the lock file: errno \(errno)")
    }
    guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
      close(file)
      throw .locked(path: path)
    }
    let text = Array("\(getpid())\n".utf8)
    // Worth nothing to the lock itself, so a full disk does not matter here.
    if ftruncate(file, 0) == 0 { _ = pwrite(file, text, text.count, 0) }
    self.path = path
    lockFile = file
  }

  /// The path of a database file, made when it is missing (readable for its owner alone).
  func prepareFile(_ name: String) throws(StoreFault) -> String {
    let file = shim_open_lock_file(path + "/" + name)
    guard file >= 0 else {
      throw .unavailable(outcomeUnknown: false, detail: "opening \(name): errno \(errno)")
    }
    close(file)
    return path + "/" + name
  }

  /// Lets the directory go.
  ///
  /// Call it once, last.
  package func unlock() { close(lockFile) }
}
