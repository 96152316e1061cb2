import Foundation

/// Both halves of a dating app's notifications: the app on a phone, and the app server that tells it of likes, messages
/// and matches.
///
///     dating app ann                      Ann's phone: shows what comes, prints where a tap leads
///     dating like ann ben                 the app server: Ben likes Ann
///     dating message ann ben "Hi there"   Ben writes to Ann
///     dating match ann ben PICTURE-URL    they like each other
///
/// The server is the one of `weir serve`, with its data in ./weir-data (or WEIR_CREDENTIALS, WEIR_XMPP, WEIR_HTTPS).
@main
struct DatingExample {
  static func main() async {
    let words = Array(CommandLine.arguments.dropFirst())
    do {
      switch words.first {
      case "app" where words.count == 2: try await DatingApp(user: words[1]).run()
      case "like" where words.count == 3: try await DatingServer().like(words[1], by: words[2])
      case "message" where words.count == 4:
        try await DatingServer().message(words[1], from: words[2], text: words[3])
      case "match" where words.count >= 3:
        try await DatingServer().match(words[1], with: words[2], picture: words.count > 3 ? words[3] : nil)
      default:
        print("usage: dating app USER | like USER BY | message USER FROM TEXT | match USER WITH [PICTURE]")
        exit(2)
      }
    } catch {
      print("dating: \(error)")
      exit(1)
    }
  }
}

/// Where the server is.
struct Place {
  static func variable(_ name: String, _ fallback: String) -> String {
    ProcessInfo.processInfo.environment[name] ?? fallback
  }

  let credentials = variable("WEIR_CREDENTIALS", "./weir-data/credentials")
  let xmpp = Int(variable("WEIR_XMPP", "5235")) ?? 5235
  let https = Int(variable("WEIR_HTTPS", "8443")) ?? 8443

  func text(_ file: String) throws -> String {
    try String(contentsOfFile: credentials + "/" + file, encoding: .utf8).trimmingCharacters(
      in: .whitespacesAndNewlines)
  }
}
