import Bytes
import TLSCore

/// A client's and a server's session with a wire of memory between them.
final class MemoryPair {
  let client: TLSSession
  let server: TLSSession
  let scratch = TLSScratch()
  /// Plaintext each side got.
  var toServer: [UInt8] = []
  var toClient: [UInt8] = []
  var openings: [String] = []
  /// Bytes handed over at once.
  var stepBytes = Int.max
  /// Called with each flight to the server, to alter it.
  var tamper: (([UInt8]) -> [UInt8])?
  private var clientToServer: [UInt8] = []
  private var serverToClient: [UInt8] = []

  init(_ clientContext: TLSContext, _ serverContext: TLSContext, host: String = "localhost") throws {
    client = try TLSSession(client: clientContext, host: host)
    server = try TLSSession(server: serverContext)
    client.start(scratch)
    clientToServer += takeOutput()
    pump()
  }

  var isOpen: Bool { client.state == .open && server.state == .open }

  func clientSends(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { _ = client.send($0, scratch) }
    clientToServer += takeOutput()
  }

  func serverSends(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { _ = server.send($0, scratch) }
    serverToClient += takeOutput()
  }

  func clientCloses() {
    client.closeNotify(scratch)
    clientToServer += takeOutput()
  }

  func pump() {
    while !clientToServer.isEmpty || !serverToClient.isEmpty {
      let flight = tamper?(clientToServer) ?? clientToServer
      clientToServer = []
      deliver(flight) { bytes in
        server.receive(bytes, scratch, opened: { openings.append("server") }) {
          toServer.append(contentsOf: $0)
        }
        serverToClient += takeOutput()
      }
      let back = serverToClient
      serverToClient = []
      deliver(back) { bytes in
        client.receive(bytes, scratch, opened: { openings.append("client") }) {
          toClient.append(contentsOf: $0)
        }
        clientToServer += takeOutput()
      }
    }
  }

  private func deliver(_ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) -> Void) {
    bytes.withUnsafeBytes { all in
      var start = 0
      while start < all.count {
        let end = start + min(stepBytes, all.count - start)
        body(UnsafeRawBufferPointer(rebasing: all[start..<end]))
        start = end
      }
    }
  }

  private func takeOutput() -> [UInt8] {
    let bytes = Array(scratch.output.bytes)
    scratch.output.removeAll()
    return bytes
  }
}

/// Compares long runs of bytes; `==` within an expectation would print a difference, which takes hours.
func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool { left == right }
