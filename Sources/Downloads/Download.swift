import CCurl
import Glibc
package import NotificationCore
import Synchronization

/// Why a file could not be had.
package struct DownloadFault: Error, Sendable, Hashable, CustomStringConvertible {
  package enum Kind: Sendable, Hashable {
    /// The address is none, or of another kind than http and https.
    case address
    /// The server could not be reached, or answered with something else than 200.
    case network
    /// Not all of it came, or its end is missing.
    case truncated
    /// The bytes are of no type that is shown.
    case type
    case tooLarge
    case overdue
    case cancelled
    /// The disk.
    case file
  }

  package var kind: Kind
  package var description: String

  package init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}

/// Fetches a picture, a sound or a movie into a file, over HTTP or HTTPS.
///
/// The type is told by the bytes alone and decides the file's name and the size that is allowed; what is too large or of
/// no known type is cut off at once, not after it was loaded. One thread a download, for its time.
package enum Download {
  package struct Settings: Sendable {
    /// All of it, redirects included.
    package var timeout: Duration
    /// Believed instead of the system's certificates.
    package var caFile: String?
    package var redirectsMax: Int
    /// Kinds that are wanted.
    package var kinds: Set<MediaType.Kind>

    package init(
      timeout: Duration = .seconds(25), caFile: String? = nil, redirectsMax: Int = 5,
      kinds: Set<MediaType.Kind> = [.image, .audio, .movie]
    ) {
      self.timeout = timeout
      self.caFile = caFile
      self.redirectsMax = redirectsMax
      self.kinds = kinds
    }
  }

  package struct File: Sendable, Hashable {
    package var path: String
    package var type: MediaType
    package var byteCount: Int
  }

  /// Fetches `address` into `folder`, as `name` with the extension of its type.
  ///
  /// Ends early, without a file, when the task is cancelled.
  package static func fetch(
    _ address: String, into folder: String, name: String, _ settings: Settings = Settings()
  ) async throws(DownloadFault) -> File {
    let isCancelled = CancelFlag()
    let result: Result<File, DownloadFault> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let job = Job(address, folder: folder, name: name, settings, isCancelled) {
          continuation.resume(returning: $0)
        }
        job.start()
      }
    } onCancel: {
      isCancelled.set()
    }
    return try result.get()
  }
}

final class CancelFlag: Sendable {
  private let value = Atomic<Bool>(false)
  var isSet: Bool { value.load(ordering: .relaxed) }
  func set() { value.store(true, ordering: .relaxed) }
}

/// One download on its own thread.
///
/// `@unchecked Sendable`: made on one thread, then touched by the thread it starts alone.
private final class Job: @unchecked Sendable {
  private let address: String
  private let folder: String
  private let name: String
  private let settings: Download.Settings
  private let isCancelled: CancelFlag
  private let done: @Sendable (Result<Download.File, DownloadFault>) -> Void
  private var type: MediaType?
  private var head: [UInt8] = []
  private var tail: [UInt8] = []
  private var count = 0
  private var file: Int32 = -1
  private var fault: DownloadFault?

  init(
    _ address: String, folder: String, name: String, _ settings: Download.Settings, _ isCancelled: CancelFlag,
    _ done: @escaping @Sendable (Result<Download.File, DownloadFault>) -> Void
  ) {
    self.address = address
    self.folder = folder
    self.name = name
    self.settings = settings
    self.isCancelled = isCancelled
    self.done = done
  }

  func start() {
    var thread = pthread_t()
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, 256 << 10)
    let held = Unmanaged.passRetained(self)
    let code = pthread_create(&thread, &attributes, runJob, held.toOpaque())
    pthread_attr_destroy(&attributes)
    if code != 0 {
      held.release()
      done(.failure(DownloadFault(.network, "no thread")))
    }
  }

  private var path: String { "\(folder)/\(name).\(type?.fileExtension ?? "part")" }
  private var partPath: String { "\(folder)/\(name).part" }

  func run() {
    let result = perform()
    if file >= 0 { close(file) }
    if case .failure = result { unlink(partPath) }
    done(result)
  }

  private func perform() -> Result<Download.File, DownloadFault> {
    let lower = address.prefix(8).lowercased()
    guard lower.hasPrefix("http://") || lower.hasPrefix("https://"), address.utf8.count <= 4_096,
      !address.utf8.contains(where: { $0 <= 32 || $0 == 127 })
    else { return .failure(DownloadFault(.address, "not an address of http or https")) }
    guard CurlLibrary.isReady, let curl = curl_easy_init() else {
      return .failure(DownloadFault(.network, "libcurl does not start"))
    }
    defer { curl_easy_cleanup(curl) }
    let own = Unmanaged.passUnretained(self).toOpaque()
    let ms = Int(
      clamping: max(
        1,
        settings.timeout.components.seconds &* 1_000
          &+ settings.timeout.components.attoseconds / 1_000_000_000_000_000))
    _ = shim_curl_set_text(curl, CURLOPT_URL, address)
    _ = shim_curl_set_text(curl, CURLOPT_PROTOCOLS_STR, "http,https")
    _ = shim_curl_set_text(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
    _ = shim_curl_set_long(curl, CURLOPT_FOLLOWLOCATION, 1)
    _ = shim_curl_set_long(curl, CURLOPT_MAXREDIRS, settings.redirectsMax)
    _ = shim_curl_set_long(curl, CURLOPT_NOSIGNAL, 1)
    _ = shim_curl_set_long(curl, CURLOPT_TIMEOUT_MS, ms)
    _ = shim_curl_set_long(curl, CURLOPT_CONNECTTIMEOUT_MS, min(ms, 10_000))
    _ = shim_curl_set_long(curl, CURLOPT_FAILONERROR, 1)
    _ = shim_curl_set_text(curl, CURLOPT_USERAGENT, "weir")
    if let caFile = settings.caFile { _ = shim_curl_set_text(curl, CURLOPT_CAINFO, caFile) }
    _ = shim_curl_set_sink(curl, CURLOPT_WRITEFUNCTION, writeBytes, own, CURLOPT_WRITEDATA)
    _ = shim_curl_set_long(curl, CURLOPT_NOPROGRESS, 0)
    let watch: curl_xferinfo_callback = watchProgress
    _ = shim_curl_set_pointer(curl, CURLOPT_XFERINFOFUNCTION, unsafeBitCast(watch, to: UnsafeRawPointer.self))
    _ = shim_curl_set_pointer(curl, CURLOPT_XFERINFODATA, own)
    let code = curl_easy_perform(curl)
    if let fault { return .failure(fault) }
    switch code {
    case CURLE_OK: return finish()
    case CURLE_OPERATION_TIMEDOUT: return .failure(DownloadFault(.overdue, "not there in time"))
    case CURLE_PARTIAL_FILE: return .failure(DownloadFault(.truncated, "the server stopped early"))
    case CURLE_ABORTED_BY_CALLBACK: return .failure(DownloadFault(.cancelled, "cancelled"))
    case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL:
      return .failure(DownloadFault(.address, String(cString: curl_easy_strerror(code))))
    default: return .failure(DownloadFault(.network, String(cString: curl_easy_strerror(code))))
    }
  }

  private func finish() -> Result<Download.File, DownloadFault> {
    if type == nil, !settleType() { return .failure(fault ?? DownloadFault(.type, "no known type")) }
    guard let type else { return .failure(DownloadFault(.type, "no known type")) }
    guard type.isWhole(tail) else { return .failure(DownloadFault(.truncated, "its end is missing")) }
    guard rename(partPath, path) == 0 else { return .failure(fileFault()) }
    return .success(Download.File(path: path, type: type, byteCount: count))
  }

  /// - Returns: False ends the transfer.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    count += bytes.count
    tail = tail.suffix(max(0, 64 - bytes.count)) + bytes.suffix(64)
    guard type == nil else { return checkSize() && write(bytes) }
    head.append(contentsOf: bytes)
    guard head.count >= MediaType.headMax else { return true }
    return settleType()
  }

  /// Tells the type by what came so far and writes it.
  private func settleType() -> Bool {
    guard let found = MediaType(head), settings.kinds.contains(found.kind) else {
      fault = DownloadFault(.type, "the bytes are of no type that is shown")
      return false
    }
    type = found
    guard checkSize() else { return false }
    file = open(partPath, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o600)
    guard file >= 0 else {
      fault = fileFault()
      return false
    }
    let head = head
    self.head = []
    return head.withUnsafeBytes { write($0) }
  }

  private func checkSize() -> Bool {
    guard let type, count > type.kind.bytesMax else { return true }
    fault = DownloadFault(.tooLarge, "larger than \(type.kind.bytesMax) bytes")
    return false
  }

  private func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var rest = bytes
    while let start = rest.baseAddress, rest.count > 0 {
      let written = Glibc.write(file, start, rest.count)
      if written < 0, errno == EINTR { continue }
      guard written > 0 else {
        fault = fileFault()
        return false
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
    return true
  }

  /// - Parameter expected: What the server says it will send; 0 when it does not say.
  func goesOn(expected: Int) -> Bool {
    if isCancelled.isSet {
      fault = DownloadFault(.cancelled, "cancelled")
      return false
    }
    // Beyond the largest kind there is; the type's own limit is checked on arrival.
    if expected > MediaType.Kind.movie.bytesMax {
      fault = DownloadFault(.tooLarge, "\(expected) bytes")
      return false
    }
    return true
  }

  private func fileFault() -> DownloadFault {
    DownloadFault(.file, "\(folder): \(String(cString: strerror(errno)))")
  }
}

private enum CurlLibrary {
  static let isReady = shim_curl_global_init() == CURLE_OK
}

private func runJob(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let context else { return nil }
  Unmanaged<Job>.fromOpaque(context).takeRetainedValue().run()
  return nil
}

private func writeBytes(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  guard let context, let bytes else { return 0 }
  let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
  return Unmanaged<Job>.fromOpaque(context).takeUnretainedValue().receive(buffer) ? size * count : 0
}

private func watchProgress(
  _ context: UnsafeMutableRawPointer?, _ expected: curl_off_t, _ got: curl_off_t, _ toSend: curl_off_t,
  _ sent: curl_off_t
) -> Int32 {
  guard let context else { return 1 }
  return Unmanaged<Job>.fromOpaque(context).takeUnretainedValue().goesOn(expected: Int(expected)) ? 0 : 1
}
