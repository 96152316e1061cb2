import CCurl
import Dispatch

extension HTTPSender {
  /// Connects once, to learn whether there is a server and whether its certificate is believed.
  ///
  /// Nothing is sent, and ``send(_:)`` does not need it: that retries until a message's time is up, which a program with
  /// a long list to send does not want to wait for when the address is wrong.
  ///
  /// - Throws: ``StreamClient/ConnectError`` with what curl says.
  public func connect() async throws(StreamClient.ConnectError) {
    let settings = CurlSettings(configuration)
    let address = "\(configuration)/"
    // Its own thread, since curl waits: up to the configuration's timeout.
    let fault = await withCheckedContinuation { (continuation: CheckedContinuation<String?, Never>) in
      DispatchQueue.global().async {
        continuation.resume(returning: CurlTransfer(settings)?.reach(address) ?? nil)
      }
    }
    if let fault { throw StreamClient.ConnectError(wasRefused: false, detail: fault) }
  }
}

extension CurlTransfer {
  /// Connects, with TLS, and lets go again.
  ///
  /// - Returns: What went wrong; nil when there is a server.
  func reach(_ address: String) -> String? {
    shim_curl_set_long(handle, CURLOPT_CONNECT_ONLY, 1)
    shim_curl_set_text(handle, CURLOPT_URL, address)
    let code = curl_easy_perform(handle)
    return code == CURLE_OK ? nil : String(cString: curl_easy_strerror(code))
  }
}
