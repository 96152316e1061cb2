import Foundation

/// Lines over time, as inline SVG that follows the page's light or dark colours.
struct Chart {
  struct Line {
    var name: String
    /// One value a second; nil leaves a gap.
    var values: [Double?]
    var isFilled = false
  }

  var title: String
  var unit: String
  var lines: [Line]
  /// Seconds that are set off: from and to, counted as the values are.
  var band: Range<Int>?
  /// What the band stands for.
  var bandName = ""
  /// Moments worth a line: what happened in a second, counted as the values are.
  var marks: [(at: Int, name: String)] = []
  var isLogarithmic = false
  /// Seconds that one value stands for.
  var secondsPerValue = 1

  private static let colours = ["var(--a)", "var(--b)", "var(--c)", "var(--d)"]
  private static let (width, height) = (1_000.0, 274.0)
  private static let (left, right, top, bottom) = (64.0, 12.0, 28.0, 26.0)

  private var count: Int { lines.map(\.values.count).max() ?? 0 }

  var svg: String {
    guard count > 0 else { return "" }
    let values = lines.flatMap { $0.values.compactMap { $0 } }
    let scale = Scale(values, isLogarithmic: isLogarithmic)
    var inner = ""
    if let band, !band.isEmpty {
      let from = max(Self.left, x(Double(band.lowerBound) - 0.5))
      let to = min(Self.width - Self.right, x(Double(band.upperBound) - 0.5))
      inner +=
        "<rect class=\"band\" x=\"\(Self.f(from))\" y=\"\(Self.top)\" width=\"\(Self.f(max(1, to - from)))\" "
        + "height=\"\(Self.f(Self.height - Self.top - Self.bottom))\"><title>\(bandName)</title></rect>"
    }
    for tick in scale.ticks {
      let y = y(tick, scale)
      inner +=
        "<line class=\"grid\" x1=\"\(Self.left)\" x2=\"\(Self.width - Self.right)\" y1=\"\(Self.f(y))\" y2=\"\(Self.f(y))\"/>"
        + "<text x=\"\(Self.left - 8)\" y=\"\(Self.f(y + 4))\" text-anchor=\"end\">\(Self.number(tick))</text>"
    }
    for second in secondTicks {
      inner +=
        "<text x=\"\(Self.f(x(Double(second))))\" y=\"\(Self.height - 8)\" text-anchor=\"middle\">\((second + 1) * secondsPerValue) s</text>"
    }
    for (index, mark) in marks.enumerated() where mark.at < count {
      // Names of neighbours stand one above the other.
      let nameY = Self.f(Self.top - (index.isMultiple(of: 2) ? 3 : 15))
      let x = Self.f(x(Double(mark.at)))
      inner +=
        "<line class=\"mark\" x1=\"\(x)\" x2=\"\(x)\" y1=\"\(Self.top)\" y2=\"\(Self.height - Self.bottom)\"/>"
        + "<text class=\"mark\" x=\"\(x)\" y=\"\(nameY)\" text-anchor=\"middle\">\(HTMLPage.escape(mark.name))</text>"
    }
    for (index, line) in lines.enumerated() {
      let colour = Self.colours[index % Self.colours.count]
      for run in runs(of: line.values) { inner += path(run, line.isFilled, colour, scale) }
    }
    inner += hits
    return """
      <figure class="chart"><figcaption>\(HTMLPage.escape(title)), \(HTMLPage.escape(unit))</figcaption>
      <div class="legend">\(legend)</div>
      <svg viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" role="img" aria-label="\(HTMLPage.escape(title))">\(inner)</svg></figure>

      """
  }

  private var legend: String {
    lines.enumerated().map { index, line in
      "<span><i style=\"background:\(Self.colours[index % Self.colours.count])\"></i>\(HTMLPage.escape(line.name))</span>"
    }.joined()
  }

  /// A strip for each second that tells its values when it is pointed at.
  private var hits: String {
    guard count <= 1_200 else { return "" }
    let step = x(1) - x(0)
    return (0..<count).map { index in
      let told = lines.map { line in
        let value = index < line.values.count ? line.values[index] : nil
        return "\(line.name): \(value.map { Self.number($0) } ?? "–")"
      }.joined(separator: "\n")
      return
        "<rect class=\"hit\" x=\"\(Self.f(x(Double(index)) - step / 2))\" y=\"\(Self.top)\" width=\"\(Self.f(step))\" "
        + "height=\"\(Self.f(Self.height - Self.top - Self.bottom))\"><title>second \((index + 1) * secondsPerValue)\n\(HTMLPage.escape(told))</title></rect>"
    }.joined()
  }

  // MARK: Geometry

  private func x(_ index: Double) -> Double {
    let room = Self.width - Self.left - Self.right
    return Self.left + room * (count > 1 ? index / Double(count - 1) : 0.5)
  }

  private func y(_ value: Double, _ scale: Scale) -> Double {
    Self.height - Self.bottom - scale.share(value) * (Self.height - Self.top - Self.bottom)
  }

  private func runs(of values: [Double?]) -> [[(Int, Double)]] {
    var runs: [[(Int, Double)]] = []
    var run: [(Int, Double)] = []
    for (index, value) in values.enumerated() {
      if let value {
        run.append((index, value))
      } else if !run.isEmpty {
        runs.append(run)
        run = []
      }
    }
    if !run.isEmpty { runs.append(run) }
    return runs
  }

  private func path(_ run: [(Int, Double)], _ isFilled: Bool, _ colour: String, _ scale: Scale) -> String {
    guard let first = run.first, let last = run.last else { return "" }
    let points = run.map { "\(Self.f(x(Double($0.0)))) \(Self.f(y($0.1, scale)))" }.joined(separator: "L")
    let base = Self.f(Self.height - Self.bottom)
    var text = ""
    if run.count == 1 {
      text +=
        "<circle cx=\"\(Self.f(x(Double(first.0))))\" cy=\"\(Self.f(y(first.1, scale)))\" r=\"3\" fill=\"\(colour)\"/>"
    }
    if isFilled {
      text +=
        "<path class=\"area\" fill=\"\(colour)\" d=\"M\(Self.f(x(Double(first.0)))) \(base)L\(points)L\(Self.f(x(Double(last.0)))) \(base)Z\"/>"
    }
    return text + "<path class=\"line\" stroke=\"\(colour)\" d=\"M\(points)\"/>"
  }

  /// At most ten seconds get a number.
  private var secondTicks: [Int] {
    let steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200]
    let step = steps.first { count / $0 <= 10 } ?? max(1, count / 10)
    return (0..<count).filter { ($0 + 1).isMultiple(of: step) || count == 1 }
  }

  private static func f(_ value: Double) -> String { String(format: "%.1f", value) }

  static func number(_ value: Double) -> String {
    switch abs(value) {
    case 1_000_000...: String(format: "%.1f M", value / 1e6)
    case 10_000...: String(format: "%.0f k", value / 1e3)
    case 1_000...: String(format: value.remainder(dividingBy: 1e3) == 0 ? "%.0f k" : "%.1f k", value / 1e3)
    case 100...: String(format: "%.0f", value)
    case 0: "0"
    case 10...: value.rounded() == value ? String(format: "%.0f", value) : String(format: "%.1f", value)
    case 0.1...: value.rounded() == value ? String(format: "%.0f", value) : String(format: "%.2g", value)
    default: String(format: "%.2g", value)
    }
  }

  /// A time of milliseconds, with a unit that suits it.
  static func milliseconds(_ value: Double) -> String {
    value >= 1_000 ? String(format: "%.2f s", value / 1_000) : number(value) + " ms"
  }

  /// Where values lie between the bottom and the top of the chart.
  struct Scale {
    let ticks: [Double]
    private let low: Double
    private let high: Double
    private let isLogarithmic: Bool

    init(_ values: [Double], isLogarithmic: Bool) {
      let most = values.max() ?? 1
      let least = values.filter { $0 > 0 }.min() ?? 0.1
      if isLogarithmic, most > 0 {
        self.isLogarithmic = true
        var bottom = Int(Foundation.log10(least).rounded(.down))
        let top = max(bottom + 1, Int(Foundation.log10(most).rounded(.up)))
        bottom = max(bottom, top - 6)
        low = Double(bottom)
        high = Double(top)
        ticks = (bottom...top).map { Foundation.pow(10, Double($0)) }
      } else {
        self.isLogarithmic = false
        let rough = max(most, 1e-9) / 4
        let power = Foundation.pow(10, Foundation.log10(rough).rounded(.down))
        let round = ([1, 2, 2.5, 5, 10].first { $0 * power >= rough } ?? 10) * power
        // Whole things are not counted by halves.
        let step = most >= 1 && values.allSatisfy { $0.rounded() == $0 } ? max(1, round.rounded(.up)) : round
        let count = max(1, Int((most / step).rounded(.up)))
        low = 0
        high = step * Double(count)
        ticks = (0...count).map { Double($0) * step }
      }
    }

    /// 0 at the bottom, 1 at the top.
    func share(_ value: Double) -> Double {
      let place = isLogarithmic ? Foundation.log10(max(value, Foundation.pow(10, low))) : value
      return min(1, max(0, (place - low) / max(high - low, 1e-9)))
    }
  }
}
