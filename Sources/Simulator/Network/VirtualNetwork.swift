import EventLoops
import Seams

/// How a run's network behaves when nothing in particular is wrong with it.
struct NetworkProfile {
  var latencyLeast: Duration = .microseconds(50)
  var latencyMost: Duration = .milliseconds(2)
  /// In a hundred thousand segments, so many are late by up to ``lateMost``; what follows waits behind them.
  var latePerHundredThousand = 0
  var lateMost: Duration = .seconds(3)
  /// Bytes that may be under way and unread.
  var capacity = 262_144
  /// Segments and reads are of odd sizes.
  var isChopped = false
  /// Down to single bytes.
  var isMinced = false
}

/// Connections between machines, and what can go wrong with them.
final class VirtualNetwork {
  /// Takes a connection for the server; nil when nobody listens.
  typealias Listener = (_ endpoint: Endpoint) -> Void

  struct Link {
    var owner: Int
    /// The server that took it.
    var node: Int
    var client: Endpoint
    var server: Endpoint
  }

  unowned let world: World
  var profile: NetworkProfile
  private var chance: SeededChance
  private var lastNumber = 0
  private(set) var links: [Link] = []
  /// By server.
  var listeners: [Int: Listener] = [:]
  /// Servers among which a connection is made to one by chance, whether it is up or not.
  var nodes = 1
  private var routing: SeededChance
  /// Machines that reach nobody.
  private var cutOff: Set<Int> = []
  /// When the bytes that are being read could first have been written.
  var stamp: Int64 = 0
  /// Owners that read slowly.
  var slowReaders: [Int: (bytes: Int, pause: Duration)] = [:]

  init(_ world: World, _ profile: NetworkProfile) {
    self.world = world
    self.profile = profile
    chance = world.chance("network")
    routing = world.chance("routing")
  }

  // MARK: Chance

  func latency() -> Int64 {
    if profile.latePerHundredThousand > 0, chance.below(100_000) < profile.latePerHundredThousand {
      return chance.time(.zero, profile.lateMost).ns
    }
    return chance.time(profile.latencyLeast, profile.latencyMost).ns
  }

  func segmentSize(_ count: Int) -> Int {
    guard profile.isChopped, count > 1 else { return count }
    if profile.isMinced, count < 400 { return min(count, chance.within(1...3)) }
    return chance.percent(60) ? count : chance.within(1...count)
  }

  func readSize() -> Int {
    guard profile.isChopped else { return 65_536 }
    return chance.percent(70) ? 65_536 : chance.within(1...700)
  }

  // MARK: Connecting

  func connect(
    from loop: VirtualLoop, timeout: Duration,
    _ completion: @escaping (Result<any ByteStream, NetworkFault>) -> Void
  ) -> any ConnectAttempt {
    let attempt = Attempt(loop, completion)
    world.after(timeout) { attempt.finish(.failure(.timeout)) }
    guard !cutOff.contains(loop.owner) else { return attempt }
    let there = latency()
    world.at(world.now + there) { [self] in
      guard !cutOff.contains(loop.owner) else { return }
      let node = nodes > 1 ? routing.below(nodes) : 0
      guard let listener = listeners[node] else {
        world.at(world.now + there) { attempt.finish(.failure(.refused)) }
        return
      }
      let client = make()
      let server = make()
      client.other = server
      server.other = client
      client.slowness = slowReaders[loop.owner]
      links.append(Link(owner: loop.owner, node: node, client: client, server: server))
      world.note("connects", UInt64(loop.owner), UInt64(client.number))
      listener(server)
      world.at(world.now + there) {
        guard !loop.isStopped, attempt.isWaiting else { return client.close(reset: true) }
        attempt.finish(.success(client))
      }
    }
    return attempt
  }

  private func make() -> Endpoint {
    lastNumber += 1
    return Endpoint(lastNumber, self, capacity: profile.capacity)
  }

  private final class Attempt: ConnectAttempt {
    private let loop: VirtualLoop
    private var completion: ((Result<any ByteStream, NetworkFault>) -> Void)?

    init(_ loop: VirtualLoop, _ completion: @escaping (Result<any ByteStream, NetworkFault>) -> Void) {
      self.loop = loop
      self.completion = completion
    }

    var isWaiting: Bool { completion != nil }

    func finish(_ result: Result<Endpoint, NetworkFault>) {
      guard let completion else { return }
      self.completion = nil
      loop.input { [loop] in completion(result.map { VirtualStream($0, on: loop) }) }
    }

    func cancel() { finish(.failure(.cancelled)) }
  }

  func closed(_ endpoint: Endpoint) {
    guard endpoint.isClosed, endpoint.other?.isClosed ?? true else { return }
    let other = endpoint.other
    // What is under way may still arrive, at nobody.
    links.removeAll { $0.client === endpoint || $0.server === endpoint }
    endpoint.forget()
    other?.forget()
  }

  // MARK: Faults

  /// The links of a machine, oldest first.
  func links(of owner: Int) -> [Link] { links.filter { $0.owner == owner } }

  /// No byte goes either way, and no new connection comes about; nobody is told.
  func cutOff(_ owner: Int) {
    cutOff.insert(owner)
    for link in links(of: owner) {
      link.client.stall()
      link.server.stall()
    }
  }

  func rejoin(_ owner: Int) {
    cutOff.remove(owner)
    for link in links(of: owner) {
      link.client.resume()
      link.server.resume()
    }
  }

  /// Everything flows again, except where one side is gone for good.
  func heal() {
    cutOff = []
    profile.latePerHundredThousand = 0
    slowReaders = [:]
    for link in links {
      link.client.resume()
      link.server.resume()
      link.client.slowness = nil
    }
  }

  /// The process of the server was killed: its sockets say so, or its machine vanished without a word.
  func serverDied(_ node: Int, silently: Bool) {
    for link in links where link.node == node {
      if silently {
        link.server.stall(severed: true)
        link.client.stall(severed: true)
      }
    }
  }

  func closeServerSide(_ node: Int) {
    for link in links where link.node == node && !link.server.isClosed { link.server.close(reset: true) }
  }

  func forgetAll() {
    for link in links {
      link.client.forget()
      link.server.forget()
    }
    links = []
    listeners = [:]
  }
}
