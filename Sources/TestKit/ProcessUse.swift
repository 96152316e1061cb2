import Foundation

/// What a process has used so far, as `/proc` tells (proc(5)); 0 once it is gone.
package enum ProcessUse {
  /// Processor time of all its threads, in microseconds.
  package static func microseconds(of process: Int32) -> Double { ticks(of: process, 11..<13) }

  /// The same with its living children, and with those that it waited for.
  package static func microsecondsWithChildren(of process: Int32) -> Double {
    let children = text("\(process)/task/\(process)/children").split(separator: " ").compactMap { Int32($0) }
    return ticks(of: process, 11..<15) + children.reduce(0) { $0 + ticks(of: $1, 11..<13) }
  }

  /// Resident memory in KiB.
  package static func residentKiB(of process: Int32) -> Int {
    let line = text("\(process)/status").split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
    return line.split(separator: " ").compactMap { Int($0) }.first ?? 0
  }

  private static func text(_ path: String) -> String {
    (try? String(contentsOfFile: "/proc/" + path, encoding: .utf8)) ?? ""
  }

  /// - Parameter fields: Of `stat`, counted from the state: the name before it may hold blanks.
  private static func ticks(of process: Int32, _ fields: Range<Int>) -> Double {
    let text = text("\(process)/stat")
    guard let end = text.lastIndex(of: ")") else { return 0 }
    let found = text[text.index(after: end)...].split(separator: " ")
    guard found.count > fields.upperBound else { return 0 }
    let ticks = found[fields].reduce(0) { $0 + (Double($1) ?? 0) }
    return ticks * 1_000_000 / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
