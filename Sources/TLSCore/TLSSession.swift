import Bytes
import COpenSSL

/// One TLS connection as bytes in, bytes out.
///
/// Has no socket; belongs to one thread at a time.
///
/// Every call works in a ``TLSScratch``: what is to be sent to the peer stands in its `output` afterwards, also when
/// the session has failed (an alert).
///
/// OpenSSL makes the handshake. With TLS 1.3 a ``RecordLayer`` then takes over and OpenSSL's 13.6 KB are given back, at a
/// client after the first data of the server's, before which its tickets come; between calls it holds two keys. TLS 1.2 stays
/// with OpenSSL.
package final class TLSSession {
  package enum State: Hashable, Sendable {
    /// Awaiting the peer's part of the handshake; plaintext cannot be sent yet.
    case handshaking
    case open
    /// The peer sent close_notify: it sends nothing more, and may still read.
    case peerClosed
    /// Over. `output` may hold an alert.
    case failed(TLSFault)
  }

  /// Who makes and reads records.
  private enum Engine {
    case openSSL(OpenSSLEngine)
    case records(RecordLayer)
  }

  package private(set) var state = State.handshaking
  package let context: TLSContext
  /// The server that a client asked for; nil on a server.
  package let server: String?

  private var engine: Engine
  /// Of the handshake that was made before records were taken over.
  private var agreed: Agreement?
  private var hasSeenBytes = false
  private var hasSentClose = false

  /// A server's side of a new connection.
  package init(server context: TLSContext) throws(TLSFault) {
    engine = .openSSL(try OpenSSLEngine(server: context))
    self.context = context
    server = nil
  }

  /// A client's side; `start` makes the first bytes.
  ///
  /// - Parameters:
  ///   - host: Name or IP address that the certificate must be for. A name is sent along (SNI, RFC 6066 §3).
  ///   - port: Keeps the sessions of two servers of one host apart.
  package init(client context: TLSContext, host: String, port: UInt16 = 0) throws(TLSFault) {
    engine = .openSSL(try OpenSSLEngine(client: context, host: host, port: port))
    self.context = context
    server = host
  }

  // MARK: Calls

  /// Makes a client's first flight.
  ///
  /// Does nothing when repeated.
  package func start(_ scratch: TLSScratch) {
    guard state == .handshaking, !context.isServer, case .openSSL(let engine) = engine else { return }
    engine.lend(UnsafeRawBufferPointer(start: nil, count: 0), scratch.output)
    defer { engine.endLoan() }
    shakeHands(engine)
  }

  /// Takes bytes of the peer, all of them.
  ///
  /// - Parameters:
  ///   - scratch: Of this thread; nobody else may use it during the call.
  ///   - opened: Called once, when the handshake is done and before any plaintext. May call `send`.
  ///   - sink: Called with plaintext in order, good until it returns. May call `send`, never `receive`.
  package func receive(
    _ cipher: UnsafeRawBufferPointer, _ scratch: TLSScratch, opened: () -> Void = {},
    sink: (UnsafeRawBufferPointer) -> Void
  ) {
    guard !cipher.isEmpty, state == .handshaking || state == .open else { return }
    if !hasSeenBytes {
      hasSeenBytes = true
      if let fault = TLSFault.looking(at: cipher) {
        state = .failed(fault)
        return
      }
    }
    switch engine {
    case .records(let records): ended(records.receive(cipher, scratch, sink: sink))
    case .openSSL(let engine):
      engine.lend(cipher, scratch.output)
      defer { engine.endLoan() }
      receive(by: engine, scratch, opened, sink)
    }
  }

  private func receive(
    by openSSL: OpenSSLEngine, _ scratch: TLSScratch, _ opened: () -> Void,
    _ sink: (UnsafeRawBufferPointer) -> Void
  ) {
    if state == .handshaking {
      shakeHands(openSSL)
      guard state == .open else { return }
      if context.isServer { takeOver(from: openSSL) }
      opened()
    }
    if case .records(let records) = engine {
      ended(records.receive(openSSL.unread, scratch, sink: sink))
      return
    }
    let (hasRead, ending) = openSSL.read(into: scratch.plaintext, sink)
    ended(ending)
    if hasRead, !context.isServer, state == .open, openSSL.isBetweenRecords { takeOver(from: openSSL) }
  }

  /// Turns plaintext into records of up to 16 KB in the scratch output.
  ///
  /// Only when the state is `open` or the peer has closed its side.
  ///
  /// - Returns: Whether all of it was taken; false leaves nothing of it to be sent.
  @discardableResult
  package func send(_ plain: UnsafeRawBufferPointer, _ scratch: TLSScratch) -> Bool {
    guard state == .open || state == .peerClosed, !hasSentClose else { return false }
    switch engine {
    case .records(let records):
      if records.send(plain, into: scratch.output) { return true }
      state = .failed(.corrupted("could not be made"))
    case .openSSL(let engine):
      guard let fault = engine.send(plain, into: scratch.output) else { return true }
      state = .failed(fault)
    }
    return false
  }

  /// Says that nothing more will be sent (close_notify).
  ///
  /// Harmless when repeated.
  package func closeNotify(_ scratch: TLSScratch) {
    guard state == .open || state == .peerClosed, !hasSentClose else { return }
    hasSentClose = true
    switch engine {
    case .records(let records): records.closeNotify(into: scratch.output)
    case .openSSL(let engine): engine.closeNotify(into: scratch.output)
    }
  }

  /// The connection under the session has ended: without close_notify that is a fault.
  package func inputEnded() {
    if state == .handshaking || state == .open { state = .failed(.truncated) }
  }

  // MARK: What was agreed on, once open

  private var agreement: Agreement? { agreed ?? ssl.map(Agreement.init) }

  package var version: TLSVersion? { agreement?.version }

  /// OpenSSL's name of the cipher.
  package var cipher: String? { agreement?.cipher }

  /// The application protocol both sides agreed on (RFC 7301).
  package var applicationProtocol: String? { agreement?.applicationProtocol }

  /// The host name that the client asked for (RFC 6066 §3).
  package var serverName: String? { agreement?.serverName }

  /// Whether the handshake went without certificates since an earlier session was continued.
  package var isResumed: Bool { agreement?.isResumed ?? false }

  // MARK: Steps

  /// OpenSSL's part; nil once a record layer has taken over.
  var openSSL: OpenSSLEngine? {
    guard case .openSSL(let engine) = engine else { return nil }
    return engine
  }

  var ssl: OpaquePointer? { openSSL?.ssl }

  private func shakeHands(_ engine: OpenSSLEngine) {
    switch engine.shakeHands() {
    case .waits: break
    case .done: state = .open
    case .failed(let fault): state = .failed(fault)
    }
  }

  private func takeOver(from openSSL: OpenSSLEngine) {
    guard let layer = openSSL.recordLayer() else { return }
    agreed = Agreement(openSSL.ssl)
    engine = .records(layer)
  }

  private func ended(_ ending: RecordLayer.Ending?) {
    switch ending {
    case nil: break
    case .closed: state = .peerClosed
    case .failed(let fault): state = .failed(fault)
    }
  }
}
