import Glibc

/// How many files this process may open: each stream takes one.
package enum FileLimit {
  /// Files beside streams: libraries, logs, loops.
  package static let spare = 64

  /// Raises the soft limit as far as the system lets a process do itself.
  ///
  /// - Returns: What holds now; nil when it cannot be asked.
  package static func raise() -> Int? {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return nil }
    if limit.rlim_cur < limit.rlim_max {
      limit.rlim_cur = limit.rlim_max
      setrlimit(resource, &limit)
      guard getrlimit(resource, &limit) == 0 else { return nil }
    }
    return Int(clamping: limit.rlim_cur)
  }

  /// A sentence for people when `streams` do not fit under `limit`; nil when they do.
  package static func complaint(streams: Int, limit: Int) -> String? {
    guard streams + spare > limit else { return nil }
    return "\(streams) streams need \(streams + spare) open files, and this process may open \(limit). "
      + "Raise the hard limit (ulimit -Hn, LimitNOFILE) or take at most \(max(0, limit - spare)) streams."
  }
}
