import EventLoops
import Glibc
import Seams
import Telemetry
import TestKit
import Testing

@testable import ConnectionServer

/// How many log-ins go on at once, and that nobody can keep the others out.
@Suite struct LoginGateTests {
  private final class Guest: LoginGuest {
    var heardAt: Moment
    init(_ heardAt: Moment) { self.heardAt = heardAt }
  }

  /// On a loop whose clock stands.
  private func onLoop(_ body: @escaping @Sendable (EventLoop) -> Void) async throws {
    let loop = EventLoop(name: "gate", time: ManualTime())
    try loop.start()
    defer { loop.stop() }
    try await loop.perform { body(loop) }
  }

  @Test func whoComesLaterIsLetInWhenOthersAreThrough() async throws {
    try await onLoop { loop in
      let waits = Metrics().counter(.acceptsPutOff, "xmpp")
      let gate = LoginGate(on: loop, max: 2, patience: .seconds(3), waits: waits)
      let guests = (0..<2).map { _ in Guest(loop.now) }
      #expect(gate.admits())
      for guest in guests { gate.enter(guest) }
      #expect(!gate.admits() && !gate.admits())
      #expect(waits.count == 1)
      gate.leave(guests[0])
      gate.leave(guests[0])
      #expect(gate.count == 1)
      #expect(gate.admits())
    }
  }

  /// `@unchecked Sendable`: touched on one loop's thread alone.
  private final class Held: @unchecked Sendable {
    var gate: LoginGate?
    var guests: [Guest] = []
  }

  @Test func aSilentGuestLosesItsPlaceAndOneThatSpeaksKeepsIt() async throws {
    let time = ManualTime()
    let loop = EventLoop(name: "gate", time: time)
    try loop.start()
    defer { loop.stop() }
    let held = Held()
    try await loop.perform {
      let gate = LoginGate(
        on: loop, max: 2, patience: .seconds(3), waits: Metrics().counter(.acceptsPutOff, "xmpp"))
      held.gate = gate
      held.guests = [Guest(loop.now), Guest(loop.now + .seconds(2))]
      for guest in held.guests { gate.enter(guest) }
      #expect(!gate.admits())
    }
    time.advance(by: .seconds(3))
    // A round reads the clock once, and the last one may not be over.
    let due = time.moment
    for _ in 0..<10_000 where try await loop.perform({ loop.now }) < due {}
    try await loop.perform {
      #expect(held.gate?.admits() == true)
      #expect(held.gate?.count == 1)
    }
  }

  @Test func silentConnectionsKeepNobodyOutForLong() async throws {
    try await TestServer.run({
      $0.loops = 1
      $0.limits = ["logins-under-way": 2, "login-seconds": 4]
    }) { address in
      let silent = try (0..<4).map { _ in try silentConnection(to: address.xmpp) }
      defer { for descriptor in silent { close(descriptor) } }
      // Two of them hold the places, so these wait in the system's queue, and are let in when the two count no more.
      var devices: [TestDevice] = []
      for _ in 0..<8 { devices.append(try await address.registerDevice()) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for device in devices { group.addTask { _ = try await address.connect(device) } }
        try await group.waitForAll()
      }
      let metrics = try await address.administer("GET", "/metrics")
      let text = metrics.body
      let line = text.split(separator: "\n").first {
        $0.hasPrefix("weir_accepts_put_off_total{listener=\"xmpp\"}")
      }
      let count = line.flatMap { Int($0.split(separator: " ").last ?? "") }
      #expect((count ?? 0) >= 1, "\(line ?? "no such metric")")
    }
  }

  /// A connection that never says anything.
  private func silentConnection(to port: Int) throws -> CInt {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(code == 0)
    return descriptor
  }
}
