import Seams
import Testing

@testable import ConnectionServer

@Suite struct LoginGuardTests {
  private let guardian = LoginGuard(failuresPerMinuteMax: 30)
  private func at(_ seconds: Int) -> Moment { Moment(ns: 0) + .seconds(seconds) }

  @Test func eachFailureOfAnAddressDoublesThePauseUpToFiveSeconds() {
    let pauses = (0..<9).map { guardian.failed(from: "10.0.0.1:\(40_000 + $0)", now: at($0)) }
    #expect(
      pauses == [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000].map { Duration.milliseconds($0) })
  }

  @Test func anotherAddressIsNotSlowed() {
    for port in 0..<50 { _ = guardian.failed(from: "10.0.0.1:\(port)", now: at(0)) }
    #expect(guardian.failed(from: "10.0.0.2:1", now: at(0)) == .milliseconds(100))
    #expect(guardian.failed(from: "[::1]:1", now: at(0)) == .milliseconds(100))
    #expect(guardian.failed(from: "[::1]:2", now: at(0)) == .milliseconds(200))
  }

  @Test func aMinuteLaterItIsForgotten() {
    for _ in 0..<50 { _ = guardian.failed(from: "10.0.0.1:1", now: at(0)) }
    #expect(guardian.failed(from: "10.0.0.1:1", now: at(60)) == .seconds(5))
    #expect(guardian.failed(from: "10.0.0.1:1", now: at(61)) == .milliseconds(100))
  }

  @Test func aFloodOfAddressesIsBounded() {
    for number in 0..<10_000 {
      _ = guardian.failed(from: "10.\(number / 256).\(number % 256).1:1", now: at(0))
    }
    #expect(guardian.failed(from: "192.0.2.1:1", now: at(0)) == .milliseconds(100))
    #expect(guardian.failed(from: "10.0.0.1:1", now: at(0)) == .milliseconds(100), "all were forgotten")
  }
}
