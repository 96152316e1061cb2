import JSONCore
import PushModel

/// Checks messages without sending them.
struct BulkCheck {
  private(set) var valid = 0
  private(set) var invalid = 0
  /// The first valid message, as it would be sent.
  private(set) var first: String?
  private var reader = DownstreamReader(limits: Limits())

  /// What is wrong with a record; nil for a valid or empty one.
  mutating func fault(in record: Result<[UInt8], UsageFault>) -> String? {
    switch record {
    case .failure(let fault):
      invalid += 1
      return fault.message
    case .success(let line):
      if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { return nil }
      let fault = fault(in: line)
      if fault != nil {
        invalid += 1
      } else {
        valid += 1
        if first == nil { first = String(decoding: line, as: UTF8.self) }
      }
      return fault
    }
  }

  private mutating func fault(in line: [UInt8]) -> String? {
    switch LineSource.identify(line, orAs: "check") {
    case .failure(let fault): return fault.message
    case .success(let (_, line)):
      switch line.withUnsafeBytes({ reader.read($0) }) {
      case .downstream: return nil
      case .nack(let refusal, _): return refusal.description
      case .stanzaError(let text): return text
      case .ack: return "an ack is not a message"
      }
    }
  }
}
