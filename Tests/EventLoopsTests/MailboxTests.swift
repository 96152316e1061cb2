import EventLoops
import Glibc
import Testing

struct MailboxTests {
  @Test func messagesOfFourThreadsAllArriveInOrderWithFarFewerWakeUps() throws {
    let loop = EventLoop(name: "mail")
    try loop.start()
    defer { loop.stop() }
    struct Tally {
      var next = [0, 0, 0, 0]
      var outOfOrder = 0
      var total = 0
    }
    let tally = Watched(Tally())
    let mailbox = Mailbox<(Int, Int)>(on: loop)
    loop.submit {
      mailbox.receive { batch in
        tally.update { tally in
          for (thread, number) in batch {
            if tally.next[thread] != number { tally.outOfOrder += 1 }
            tally.next[thread] = number + 1
          }
          tally.total += batch.count
        }
      }
    }
    let each = 100_000
    let threads = (0..<4).map { thread in
      EventLoop(name: "poster-\(thread)")
    }
    for (index, thread) in threads.enumerated() {
      thread.submit {
        for number in 0..<each { mailbox.post((index, number)) }
      }
      try thread.start()
    }
    #expect(tally.wait(within: 60) { $0.total == 4 * each })
    for thread in threads { thread.stop() }
    let result = tally.current
    #expect(result.outOfOrder == 0)
    #expect(result.next == [each, each, each, each])
    #expect(loop.statistics.wakeUps < UInt64(4 * each / 5))
  }

  @Test func aBatchIsHandedOverWholeAndTheArrayComesBackEmpty() throws {
    let loop = EventLoop(name: "mail")
    let batches = Watched<[[Int]]>([])
    let mailbox = Mailbox<Int>(on: loop)
    loop.submit { mailbox.receive { batch in batches.update { $0.append(batch) } } }
    var messages = [1, 2, 3]
    #expect(mailbox.post(contentsOf: &messages))
    #expect(messages.isEmpty)
    messages.append(4)
    #expect(mailbox.post(contentsOf: &messages))
    try loop.start()
    defer { loop.stop() }
    #expect(batches.wait { $0 == [[1, 2, 3, 4]] })
  }

  @Test func whatALoopPostsToItselfArrivesInTheSameRound() throws {
    let loop = EventLoop(name: "mail")
    try loop.start()
    defer { loop.stop() }
    let seen = Watched<[UInt64]>([])
    let mailbox = Mailbox<Int>(on: loop)
    loop.submit {
      mailbox.receive { _ in seen.update { $0.append(loop.statistics.rounds) } }
    }
    loop.submit {
      seen.update { $0.append(loop.statistics.rounds) }
      mailbox.post(1)
    }
    #expect(seen.wait { $0.count == 2 })
    let rounds = seen.current
    #expect(rounds.first == rounds.last)
    #expect(loop.statistics.wakeUps <= 2)
  }

  @Test func aStoppedLoopRefusesMessages() throws {
    let loop = EventLoop(name: "mail")
    let mailbox = Mailbox<Int>(on: loop)
    try loop.start()
    loop.stop()
    #expect(!mailbox.post(1))
    #expect(!mailbox.post(2))
    var more = [3]
    #expect(!mailbox.post(contentsOf: &more))
    #expect(!loop.submit {})
  }

  @Test func aShutMailboxRefusesMessagesWhileItsLoopGoesOn() throws {
    let loop = EventLoop(name: "mail")
    try loop.start()
    defer { loop.stop() }
    let mailbox = Mailbox<Int>(on: loop)
    let isShut = Watched()
    loop.submit {
      mailbox.shut()
      isShut.raise()
    }
    #expect(isShut.wait())
    #expect(!mailbox.post(1))
    #expect(loop.submit {})
  }
}
