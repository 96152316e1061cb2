import CCurl
import Glibc
import Seams

/// How a transfer ended that brought no answer.
struct CurlFault: Error, Sendable, Equatable {
  enum Kind: Sendable { case connect, timedOut, lost, trust }
  var kind: Kind
  /// For people.
  var detail: String
}

/// Who hears from a ``CurlThread``, on its thread.
protocol CurlDelegate: AnyObject {
  /// Called again and again; begins what there is to begin.
  ///
  /// - Returns: When it is to be called at the latest, if nothing happens before.
  func turn(_ thread: CurlThread) -> Moment?
  func finished(_ transfer: CurlTransfer, _ result: Result<HTTPAnswer, CurlFault>)
}

/// A thread with curl's multi interface: many transfers at once, on connections that are kept.
///
/// Sendable by argument: all but `wake` and `stop` is touched on the thread alone; curl allows its wake-up from any.
final class CurlThread: @unchecked Sendable {
  let time: any TimeSource
  private let multi: UnsafeMutableRawPointer
  private let settings: CurlSettings
  private var delegate: (any CurlDelegate)?
  private var free: [CurlTransfer] = []
  private var running: [UnsafeMutableRawPointer: CurlTransfer] = [:]
  private let isStopped = Guarded(false)

  /// curl wants to be set up once before any other thread uses it.
  private static let isReady = shim_curl_global_init() == CURLE_OK

  /// Nil when curl has no memory.
  init?(_ settings: CurlSettings, time: any TimeSource) {
    guard Self.isReady, let multi = curl_multi_init() else { return nil }
    self.multi = multi
    self.settings = settings
    self.time = time
    shim_curl_multi_set_long(multi, CURLMOPT_PIPELINING, settings.isMultiplexed ? Int(CURLPIPE_MULTIPLEX) : 0)
    shim_curl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, settings.connectionsMax)
    shim_curl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, settings.streamsMax)
    shim_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, settings.connectionsMax + 1)
  }

  deinit { curl_multi_cleanup(multi) }

  /// Starts the thread, which keeps this object and the delegate until it was stopped.
  ///
  /// - Returns: false when the system has no thread left.
  func start(_ delegate: any CurlDelegate) -> Bool {
    self.delegate = delegate
    var id = pthread_t()
    let context = Unmanaged.passRetained(self)
    guard pthread_create(&id, nil, runCurlThread, context.toOpaque()) == 0 else {
      context.release()
      return false
    }
    pthread_detach(id)
    return true
  }

  // MARK: From any thread

  func wake() { curl_multi_wakeup(multi) }

  /// The thread ends after its present turn; transfers that run are given up unheard.
  func stop() {
    isStopped.withLock { $0 = true }
    wake()
  }

  // MARK: On the thread

  /// Begins a transfer.
  ///
  /// - Returns: Nil when curl has no memory.
  func begin(_ request: CurlRequest, timeout: Duration) -> CurlTransfer? {
    guard let transfer = free.popLast() ?? CurlTransfer(settings) else { return nil }
    transfer.prepare(request, timeout: timeout)
    guard curl_multi_add_handle(multi, transfer.handle) == CURLM_OK else { return nil }
    running[transfer.handle] = transfer
    return transfer
  }

  /// Gives a transfer up; it is not heard of again.
  func abandon(_ transfer: CurlTransfer) {
    guard running.removeValue(forKey: transfer.handle) != nil else { return }
    curl_multi_remove_handle(multi, transfer.handle)
    free.append(transfer)
  }

  fileprivate func run() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    while !isStopped.withLock({ $0 }) {
      let due = delegate?.turn(self)
      var count: Int32 = 0
      curl_multi_perform(multi, &count)
      // Something ended: whoever waits for its place goes before the wait.
      if collect() { continue }
      let ns = due.map { max(0, $0.ns - time.moment.ns) } ?? 1_000_000_000
      curl_multi_poll(multi, nil, 0, Int32(clamping: min(ns / 1_000_000 + 1, 1_000)), nil)
    }
    for transfer in running.values { curl_multi_remove_handle(multi, transfer.handle) }
    running = [:]
    delegate = nil
  }

  private func collect() -> Bool {
    var hasEnded = false
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle,
        let transfer = running.removeValue(forKey: handle)
      else { continue }
      hasEnded = true
      let code = shim_curl_result(message)
      curl_multi_remove_handle(multi, handle)
      let result: Result<HTTPAnswer, CurlFault> =
        code == CURLE_OK ? .success(transfer.finish()) : .failure(Self.fault(code))
      delegate?.finished(transfer, result)
      free.append(transfer)
    }
    return hasEnded
  }

  private static func fault(_ code: CURLcode) -> CurlFault {
    let kind: CurlFault.Kind =
      switch code {
      case CURLE_OPERATION_TIMEDOUT: .timedOut
      case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST: .connect
      case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE: .trust
      default: .lost
      }
    return CurlFault(kind: kind, detail: String(cString: curl_easy_strerror(code)))
  }
}

private func runCurlThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let context {
    let thread = Unmanaged<CurlThread>.fromOpaque(context).takeRetainedValue()
    thread.run()
  }
  return nil
}
