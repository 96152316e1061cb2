import Foundation
import JSONCore
import StreamClient

/// The command `weir listen`.
struct ListenCommand: Subcommand {
  static let name = "listen"
  static let summary = "An app server that receives upstream messages and receipts, prints and acks them."
  static let flags =
    StreamSettings.flags + [
      Flag("count", "N", "ends after so many (default: never)"),
      Flag("no-ack", nil, "does not ack: everything comes again on the next stream"),
    ]
  static let examples = ["weir listen", "weir listen --json --count 10"]

  private let settings: StreamSettings
  private let count: Int
  private let acks: Bool

  init(_ arguments: Arguments) throws(UsageFault) {
    settings = try StreamSettings(arguments)
    count = try arguments.number("count", default: Int.max, in: 1...Int.max)
    acks = !arguments.has("no-ack")
  }

  func run(_ console: Console) async throws -> ExitCode {
    let client = try await settings.connect(try settings.configuration())
    console.say("Listening as \(client.configuration). Ctrl-C ends.")
    let reader = Task {
      var left = count
      for await delivery in client.upstream {
        Self.show(delivery.event, console)
        if acks { delivery.ack() }
        left -= 1
        if left == 0 { break }
      }
    }
    let signals = Signals([SIGINT, SIGTERM]) { _ in reader.cancel() }
    await reader.value
    signals.stop()
    await client.close()
    return .done
  }

  private static func show(_ event: UpstreamEvent, _ console: Console) {
    switch event {
    case .message(let message):
      if console.isJSON {
        console.result([
          "kind": "upstream", "message_id": .string(message.id), "from": .string(message.from),
          "category": .string(message.category),
          "data": .object(message.data.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) }),
        ])
      } else {
        let data = message.data.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        console.result(
          "upstream \(message.id) from \(message.from.prefix(12))…  \(data.joined(separator: " "))")
      }
    case .receipt(let receipt):
      if console.isJSON {
        console.result([
          "kind": "receipt", "original_message_id": .string(receipt.originalMessageID),
          "token": .string(receipt.token), "status": .string(receipt.status),
        ])
      } else {
        console.result("receipt \(receipt.originalMessageID) \(receipt.status)")
      }
    }
  }
}
