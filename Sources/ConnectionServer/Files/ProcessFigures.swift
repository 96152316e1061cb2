import CLinux
import Glibc

/// What the operating system says of this process.
enum ProcessFigures {
  /// Resident memory in bytes; 0 when `/proc` cannot be read.
  static var residentBytes: Int64 {
    guard let text = FileText.read("/proc/self/statm", max: 256) else { return 0 }
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int64($0) } ?? 0
    return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// Descriptors of files and sockets; 0 when `/proc` cannot be read.
  static var openFiles: Int64 {
    guard let folder = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(folder) }
    var count: Int64 = 0
    while readdir(folder) != nil { count += 1 }
    // Neither the two names of folders nor the folder that is being read.
    return max(0, count - 3)
  }

  /// Processor time of all threads, in nanoseconds.
  static var processorNs: Int64 {
    var spec = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spec)
    return Int64(spec.tv_sec) &* 1_000_000_000 &+ Int64(spec.tv_nsec)
  }
}

enum FileText {
  /// The first `max` bytes of a file as text; nil when it cannot be opened.
  static func read(_ path: String, max: Int) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: max)
    let count = Glibc.read(descriptor, &bytes, max)
    guard count >= 0 else { return nil }
    return String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}
