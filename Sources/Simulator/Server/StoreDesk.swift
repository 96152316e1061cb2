import PushModel
import Seams
import Stores

/// How a store behaves.
struct StoreWeather {
  var writeLeast: Duration = .microseconds(200)
  var writeMost: Duration = .milliseconds(3)
  var readLeast: Duration = .microseconds(50)
  var readMost: Duration = .milliseconds(2)
  /// Of a hundred calls that write.
  var failing = 0
  var losingAnswers = 0
}

/// The way of one server process to its store: when calls get there, when answers come back, and what befalls them.
///
/// Writes are carried out one after the other, as one writer does; reads go beside them and may see the store
/// before or after a write that was asked for earlier. A store that nodes share has a lane for each kind of work, and
/// order is kept within a lane alone.
// Sendable by argument: as ``World``.
final class StoreDesk: @unchecked Sendable {
  private struct Lane {
    var lastWork: Int64 = 0
    var lastAnswer: Int64 = 0
  }

  private struct Waiting {
    var call: MemoryStore.Call?
    var work: @Sendable () -> Void
  }

  private let world: World
  private var chance: SeededChance
  var weather: StoreWeather
  private let hasLanes: Bool
  private var lanes = [Lane](repeating: Lane(), count: 6)
  /// The lane of the call that is carried out.
  private var answering = 0
  private var isOpen = true
  private var waiting: [Int: Waiting] = [:]
  private var lastNumber = 0
  private(set) var writeCount = 0
  /// The store cannot be reached.
  var isAway = false
  /// A canary: called within the transaction of each call that writes messages, some time before its end.
  var inTransaction: ((_ number: Int) -> Void)?
  /// The number of the call that is carried out.
  private(set) var present = 0

  init(_ world: World, _ weather: StoreWeather, index: Int, hasLanes: Bool = false) {
    self.world = world
    self.weather = weather
    self.hasLanes = hasLanes
    chance = world.chance("store", index)
  }

  func arrive(_ call: MemoryStore.Call, _ work: @escaping @Sendable () -> Void) {
    guard isOpen else { return work() }
    lastNumber += 1
    let number = lastNumber
    waiting[number] = Waiting(call: call, work: work)
    let lane = lane(call)
    var moment: Int64
    if call.writes {
      writeCount += 1
      moment = max(world.now, lanes[lane].lastWork) + chance.time(weather.writeLeast, weather.writeMost).ns
      if inTransaction != nil, call == .write || call == .advanceFanouts {
        world.at(max(world.now, lanes[lane].lastWork)) { [self] in
          if isOpen { inTransaction?(number) }
        }
      }
      lanes[lane].lastWork = moment
    } else {
      moment = world.now + chance.time(weather.readLeast, weather.readMost).ns
    }
    world.at(moment) { [self] in
      guard let work = waiting.removeValue(forKey: number)?.work else { return }
      world.note("store", UInt64(Self.index(call)), UInt64(number))
      answering = lane
      present = number
      work()
    }
  }

  private static func index(_ call: MemoryStore.Call) -> Int {
    MemoryStore.Call.allCases.firstIndex(of: call) ?? 0
  }

  /// As the lanes of the store in PostgreSQL.
  private func lane(_ call: MemoryStore.Call) -> Int {
    guard hasLanes else { return 0 }
    switch call {
    case .write, .pruneJournal: return 0
    case .claim, .release, .touch, .lease, .handOver, .beginFanout, .changeBadge: return 1
    case .advanceFanouts, .pruneFanouts: return 2
    case .sweep, .sendersWithUpstream, .journal, .find, .registrations, .fanouts, .counts: return 3
    case .register, .unregister, .sweepIdle, .changeSubscriptions, .changeGroup, .createProject, .addKey,
      .revokeKey, .saveSetting:
      return 4
    case .backlog, .lookUp, .credentials, .topics, .groups, .users, .projects, .keys, .setting: return 5
    }
  }

  /// Answers keep the order of the calls' work.
  func deliver(_ answer: @escaping @Sendable () -> Void) {
    guard isOpen else { return answer() }
    lastNumber += 1
    let number = lastNumber
    let lane = answering
    waiting[number] = Waiting(call: nil, work: answer)
    lanes[lane].lastAnswer = max(lanes[lane].lastAnswer, world.now + Int64(chance.below(60_000)))
    world.at(lanes[lane].lastAnswer) { [self] in waiting.removeValue(forKey: number)?.work() }
  }

  func fate(_ call: MemoryStore.Call) -> MemoryStore.Fate {
    if isAway { return fateOfAbsence(call) }
    // A claim that cannot be taken back: the session would be told that there is no store.
    if chance.below(100) < weather.failing {
      world.note("store fails", UInt64(Self.index(call)))
      return .fails(.unavailable(outcomeUnknown: false, detail: "simulated"))
    }
    if chance.below(100) < weather.losingAnswers {
      world.note("store loses", UInt64(Self.index(call)))
      if hasLanes, chance.percent(40) {
        return .fails(.unavailable(outcomeUnknown: true, detail: "simulated"))
      }
      return .losesAnswer(.unavailable(outcomeUnknown: true, detail: "simulated"))
    }
    return .goesWell
  }

  /// What was under way when the database went away may have been done all the same.
  private func fateOfAbsence(_ call: MemoryStore.Call) -> MemoryStore.Fate {
    guard call.writes, chance.percent(15) else {
      return .fails(.unavailable(outcomeUnknown: false, detail: "simulated"))
    }
    let fault = StoreFault.unavailable(outcomeUnknown: true, detail: "simulated")
    return chance.percent(50) ? .losesAnswer(fault) : .fails(fault)
  }

  /// The process is gone while statements of its are with a store that lives on: of what was handed over some is
  /// carried out and some is not, in the order of each lane.
  func carryOutSome() {
    let writes = waiting.filter { $0.value.call?.writes == true }
    var stopped: Set<Int> = []
    for number in writes.keys.sorted() {
      guard let call = writes[number]?.call, !stopped.contains(lane(call)) else { continue }
      if chance.percent(50) {
        stopped.insert(lane(call))
      } else {
        waiting.removeValue(forKey: number)?.work()
      }
    }
  }

  /// The process is gone: what had not been carried out never is, as the store is closed, and nobody hears.
  func close() {
    isOpen = false
    while let number = waiting.keys.min() { waiting.removeValue(forKey: number)?.work() }
  }
}
