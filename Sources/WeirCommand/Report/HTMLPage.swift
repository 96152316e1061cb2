import Foundation

/// A report as one file: text, tables and charts, nothing fetched from anywhere.
struct HTMLPage {
  private let title: String
  private var body = ""

  init(title: String) { self.title = title }

  static func escape(_ text: String) -> String {
    var escaped = ""
    for character in text {
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      default: escaped.append(character)
      }
    }
    return escaped
  }

  /// The head of the page: what was done, and how it ended.
  mutating func headline(_ text: String, verdict: String, isGood: Bool) {
    body +=
      "<header><h1>\(Self.escape(text))</h1><p class=\"verdict \(isGood ? "good" : "bad")\">"
      + "<span aria-hidden=\"true\">\(isGood ? "✓" : "✗")</span> \(Self.escape(verdict))</p></header>\n"
  }

  mutating func paragraph(_ text: String) { body += "<p>\(Self.escape(text))</p>\n" }

  mutating func list(_ items: [String]) {
    guard !items.isEmpty else { return }
    body += "<ul>" + items.map { "<li>\(Self.escape($0))</li>" }.joined() + "</ul>\n"
  }

  /// Figures that matter most, large.
  mutating func figures(_ figures: [(value: String, label: String)]) {
    body += "<div class=\"figures\">"
    for (value, label) in figures {
      body += "<div><b>\(Self.escape(value))</b><span>\(Self.escape(label))</span></div>"
    }
    body += "</div>\n"
  }

  mutating func section(_ title: String) { body += "<h2>\(Self.escape(title))</h2>\n" }

  mutating func chart(_ chart: Chart) { body += chart.svg }

  /// - Parameter rows: The first is the head. All columns but the first are set right.
  mutating func table(_ rows: [[String]]) {
    guard let head = rows.first else { return }
    body += "<div class=\"scroll\"><table><thead><tr>"
    body += head.map { "<th>\(Self.escape($0))</th>" }.joined() + "</tr></thead><tbody>"
    for row in rows.dropFirst() {
      body += "<tr>" + row.map { "<td>\(Self.escape($0))</td>" }.joined() + "</tr>"
    }
    body += "</tbody></table></div>\n"
  }

  var text: String {
    """
    <!DOCTYPE html>
    <html lang="en"><head><meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>\(Self.escape(title))</title>
    <style>\(Self.style)</style></head>
    <body><main>
    \(body)</main></body></html>

    """
  }

  private static let style = """
    :root{color-scheme:light dark;--page:#fbfaf8;--card:#fff;--ink:#1d1c1a;--soft:#66625c;--line:#e3dfd8;
    --a:#2463b8;--b:#c8641b;--c:#2f855a;--d:#a13a7a;--good:#23734a;--bad:#b3261e}
    @media (prefers-color-scheme:dark){:root{--page:#161514;--card:#1f1e1c;--ink:#ece9e4;--soft:#a39d94;
    --line:#37342f;--a:#7fb0f5;--b:#f0a060;--c:#6fcf97;--d:#e08cc0;--good:#6fcf97;--bad:#ff8a80}}
    *{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);
    font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
    main{max-width:1040px;margin:0 auto;padding:32px 20px 64px}h1{font-size:26px;margin:0 0 4px}
    h2{font-size:17px;margin:36px 0 10px}p{margin:6px 0;color:var(--soft)}ul{color:var(--soft);padding-left:20px}
    .verdict{font-weight:600;font-size:16px}.good{color:var(--good)}.bad{color:var(--bad)}
    .figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:20px 0}
    .figures div,.chart{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px}
    .figures b{display:block;font-size:24px;font-weight:600;font-variant-numeric:tabular-nums}
    .figures span{color:var(--soft);font-size:13px}.charts{display:grid;gap:14px}
    .chart{margin:0 0 14px}.chart figcaption{font-weight:600;margin-bottom:2px}
    .chart svg{width:100%;height:auto;display:block}.chart text{fill:var(--soft);font-size:11px;
    font-variant-numeric:tabular-nums}.chart .key{font-size:12px}.legend{display:flex;flex-wrap:wrap;gap:4px 16px;
    color:var(--soft);font-size:13px}.legend i{display:inline-block;width:14px;height:3px;border-radius:2px;
    vertical-align:middle;margin-right:6px}
    .grid{stroke:var(--line);stroke-width:1}.mark{stroke:var(--soft);stroke-dasharray:3 3}.chart text.mark{stroke:none}.band{fill:var(--line);opacity:.45}
    .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.area{opacity:.12;stroke:none}
    .hit{fill:transparent}.hit:hover{fill:var(--soft);opacity:.12}
    .scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
    th,td{text-align:right;padding:5px 12px;border-bottom:1px solid var(--line);white-space:nowrap}
    th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600;font-size:13px}
    """
}
