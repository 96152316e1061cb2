import CCurl

/// One request on a handle of curl that is used again and again.
///
/// Belongs to the thread of its ``CurlThread``.
final class CurlTransfer {
  /// Bytes of an answer that are kept.
  private static var answerBytesMax: Int { 1 << 20 }

  let handle: UnsafeMutableRawPointer
  private var headers: UnsafeMutablePointer<curl_slist>?
  /// Lent to curl until the transfer is over.
  private var body: [UInt8] = []
  private(set) var answer = HTTPAnswer(status: 0, body: [])

  init?(_ settings: CurlSettings) {
    guard let handle = curl_easy_init() else { return nil }
    self.handle = handle
    shim_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
    shim_curl_set_long(handle, CURLOPT_POST, 1)
    shim_curl_set_long(handle, CURLOPT_HTTP_VERSION, settings.version)
    // Wait for a connection that can carry one more stream rather than open another.
    shim_curl_set_long(handle, CURLOPT_PIPEWAIT, settings.isMultiplexed ? 1 : 0)
    shim_curl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, settings.connectTimeoutMs)
    shim_curl_set_long(handle, CURLOPT_TCP_KEEPALIVE, 1)
    shim_curl_set_text(handle, CURLOPT_PROTOCOLS_STR, "https,http")
    if let authority = settings.authority { shim_curl_set_text(handle, CURLOPT_CAINFO, authority) }
    let me = Unmanaged.passUnretained(self).toOpaque()
    shim_curl_set_pointer(handle, CURLOPT_PRIVATE, me)
    shim_curl_set_sink(handle, CURLOPT_WRITEFUNCTION, takeBody, me, CURLOPT_WRITEDATA)
    shim_curl_set_sink(handle, CURLOPT_HEADERFUNCTION, takeHeader, me, CURLOPT_HEADERDATA)
  }

  deinit {
    curl_easy_cleanup(handle)
    curl_slist_free_all(headers)
  }

  func prepare(_ request: CurlRequest, timeout: Duration) {
    answer = HTTPAnswer(status: 0, body: [])
    body = request.body
    curl_slist_free_all(headers)
    headers = nil
    for header in request.headers { headers = curl_slist_append(headers, header) }
    shim_curl_set_text(handle, CURLOPT_URL, request.url)
    shim_curl_set_list(handle, CURLOPT_HTTPHEADER, headers)
    let (seconds, rest) = timeout.components
    shim_curl_set_long(
      handle, CURLOPT_TIMEOUT_MS, max(1, Int(clamping: seconds) * 1_000 + Int(rest / 1_000_000_000_000_000)))
    shim_curl_set_long(handle, CURLOPT_POSTFIELDSIZE, body.count)
    // Copied: an array's bytes have no address that stays.
    body.withUnsafeBytes { _ = shim_curl_set_pointer(handle, CURLOPT_COPYPOSTFIELDS, $0.baseAddress) }
  }

  /// To be called when curl is done with it.
  func finish() -> HTTPAnswer {
    answer.status = shim_curl_status(handle)
    return answer
  }

  fileprivate func took(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard answer.body.count + bytes.count <= Self.answerBytesMax else { return false }
    answer.body.append(contentsOf: bytes)
    return true
  }

  fileprivate func tookHeader(_ bytes: UnsafeRawBufferPointer) {
    // A status line begins another head: that of an interim answer is forgotten.
    if bytes.starts(with: "HTTP/".utf8) {
      answer.retryAfter = []
      answer.date = nil
    }
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon == 4 || colon == 11 else { return }
    let name = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
    guard name == "date" || name == "retry-after" else { return }
    let value = String(
      decoding: bytes[(colon + 1)...].filter { $0 >= 0x20 }.drop { $0 == 0x20 }, as: UTF8.self)
    if name == "date" { answer.date = value } else { answer.retryAfter.append(value) }
  }
}

/// What all handles of a sender have in common.
struct CurlSettings: Sendable {
  var authority: String?
  var version: Int
  var isMultiplexed: Bool
  var connectionsMax: Int
  var streamsMax: Int
  var connectTimeoutMs: Int

  init(_ configuration: HTTPSender.Configuration) {
    if case .file(let path) = configuration.trust { authority = path }
    connectTimeoutMs = max(1, Int(configuration.connectTimeout / .milliseconds(1)))
    version = CURL_HTTP_VERSION_1_1
    isMultiplexed = false
    streamsMax = 1
    switch configuration.mode {
    case .oneAtATime: connectionsMax = 1
    case .connections(let count): connectionsMax = max(1, count)
    case .streams(let streams, let connections):
      connectionsMax = max(1, connections)
      streamsMax = max(1, streams)
      isMultiplexed = true
      version = CURL_HTTP_VERSION_2TLS
    }
  }
}

struct CurlRequest: Sendable {
  var url: String
  /// Whole lines.
  var headers: [String]
  var body: [UInt8]
}

private func takeBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ user: UnsafeMutableRawPointer?
) -> Int {
  guard let user else { return 0 }
  let isTaken = Unmanaged<CurlTransfer>.fromOpaque(user)._withUnsafeGuaranteedRef {
    $0.took(UnsafeRawBufferPointer(start: bytes, count: size * count))
  }
  return isTaken ? size * count : 0
}

private func takeHeader(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ user: UnsafeMutableRawPointer?
) -> Int {
  guard let user else { return 0 }
  Unmanaged<CurlTransfer>.fromOpaque(user)._withUnsafeGuaranteedRef {
    $0.tookHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
  }
  return size * count
}
