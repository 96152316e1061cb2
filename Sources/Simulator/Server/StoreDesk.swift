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
/// before or after a write that was asked for earlier.
// Sendable by argument: as ``World``.
final class StoreDesk: @unchecked Sendable {
  private let world: World
  private var chance: SeededChance
  var weather: StoreWeather
  private var lastWrite: Int64 = 0
  private var lastAnswer: Int64 = 0
  private var isOpen = true
  private var waiting: [Int: @Sendable () -> Void] = [:]
  private var lastNumber = 0
  private(set) var writeCount = 0
  /// A canary: batches are answered before they are written.
  var answersEarly = false

  init(_ world: World, _ weather: StoreWeather, index: Int) {
    self.world = world
    self.weather = weather
    chance = world.chance("store", index)
  }

  func arrive(_ call: MemoryStore.Call, _ work: @escaping @Sendable () -> Void) {
    guard isOpen else { return work() }
    lastNumber += 1
    let number = lastNumber
    waiting[number] = work
    var moment: Int64
    if call.writes {
      writeCount += 1
      moment = max(world.now, lastWrite) + chance.time(weather.writeLeast, weather.writeMost).ns
      lastWrite = moment
    } else {
      moment = world.now + chance.time(weather.readLeast, weather.readMost).ns
    }
    world.at(moment) { [self] in
      guard let work = waiting.removeValue(forKey: number) else { return }
      world.note("store", UInt64(Self.index(call)), UInt64(number))
      work()
    }
  }

  private static func index(_ call: MemoryStore.Call) -> Int {
    MemoryStore.Call.allCases.firstIndex(of: call) ?? 0
  }

  /// Answers keep the order of the calls' work.
  func deliver(_ answer: @escaping @Sendable () -> Void) {
    guard isOpen else { return answer() }
    lastNumber += 1
    let number = lastNumber
    waiting[number] = answer
    lastAnswer = max(lastAnswer, world.now + Int64(chance.below(60_000)))
    world.at(lastAnswer) { [self] in waiting.removeValue(forKey: number)?() }
  }

  func fate(_ call: MemoryStore.Call) -> MemoryStore.Fate {
    // A claim that cannot be taken back: the session would be told that there is no store.
    if chance.below(100) < weather.failing {
      world.note("store fails", UInt64(Self.index(call)))
      return .fails(.unavailable(outcomeUnknown: false, detail: "simulated"))
    }
    if chance.below(100) < weather.losingAnswers {
      world.note("store loses", UInt64(Self.index(call)))
      return .losesAnswer(.unavailable(outcomeUnknown: true, detail: "simulated"))
    }
    return .goesWell
  }

  /// The process is gone: what had not been carried out never is, as the store is closed, and nobody hears.
  func close() {
    isOpen = false
    while let number = waiting.keys.min() { waiting.removeValue(forKey: number)?() }
  }
}
