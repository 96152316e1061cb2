import Bytes
import CLinux
import Connections
import EventLoops
import Foundation
import TLSCore
import Testing

/// What an idle connection costs, printed; only when WEIR_MEASURE is set.
@Suite(.serialized, .enabled(if: ProcessInfo.processInfo.environment["WEIR_MEASURE"] != nil))
struct IdleMemoryTests {
  @Test func bytesOfAnIdleServerChannel() throws {
    let total = 1_000
    let channels = Watched<[ChannelHolder]>([])
    let echoed = Watched(0)
    let bench = try ChannelBench { channel in
      _ = EchoChannel(channel)
      channels.update { $0.append(ChannelHolder(channel)) }
    }
    let context = try bench.clientContext()
    let client = bench.client
    let port = bench.port

    /// Opens, echoes once, lets the server pause, cuts the clients; gives what is in use then.
    func grow(by count: Int) throws -> Int {
      let before = echoed.current
      let clients = Watched<[ChannelHolder]>([])
      client.submit {
        for _ in 0..<count {
          ChannelConnector.connect(
            host: "127.0.0.1", port: port, name: "localhost", context: context, timeout: .seconds(60),
            on: client
          ) { result in
            guard case .success(let channel) = result else { return }
            let log = ChannelLog()
            log.onReceived = { _ in echoed.update { $0 += 1 } }
            channel.delegate = log
            channel.send([UInt8](repeating: 1, count: 600))
            clients.update { $0.append(ChannelHolder(channel)) }
          }
        }
      }
      try #require(echoed.wait(within: 90) { $0 == before + count })
      for channel in channels.current { channel.onLoop { $0.pauseReading() } }
      for channel in clients.current { channel.onLoop { $0.abort() } }
      clients.update { $0 = [] }
      return inUse()
    }

    // The first few pay for pools, tables and the resumption cache.
    let base = try grow(by: 400)
    let after = try grow(by: total)
    print("idle server channel: \((after - base) / total) bytes of heap in use")
    #expect((after - base) / total < 17_000)
  }

  @Test func bytesOfAnIdleServerSession() throws {
    let certificates = try TestCertificates.shared.get()
    let server = try TLSContext(
      server: TLSServerOptions(certificateChainFile: certificates.chain, privateKeyFile: certificates.key))
    let client = try TLSContext(client: TLSClientOptions(trust: .files([certificates.authority])))
    let scratch = TLSScratch()
    var sessions: [TLSSession] = []
    sessions.reserveCapacity(1_100)
    for _ in 0..<100 { sessions.append(try openSession(client, server, scratch)) }
    let base = inUse()
    for _ in 0..<1_000 { sessions.append(try openSession(client, server, scratch)) }
    print("idle server session: \((inUse() - base) / 1_000) bytes of heap in use")
    #expect(sessions.count == 1_100)
  }

  private func openSession(
    _ clientContext: TLSContext, _ serverContext: TLSContext, _ scratch: TLSScratch
  ) throws -> TLSSession {
    let client = try TLSSession(client: clientContext, host: "localhost")
    let server = try TLSSession(server: serverContext)
    client.start(scratch)
    for turn in 0..<6 {
      let flight = Array(scratch.output.bytes)
      scratch.output.removeAll()
      flight.withUnsafeBytes { (turn % 2 == 0 ? server : client).receive($0, scratch) { _ in } }
    }
    #expect(server.state == .open)
    return server
  }

  private func inUse() -> Int {
    let info = mallinfo2()
    return Int(info.uordblks) + Int(info.hblkhd)
  }
}
