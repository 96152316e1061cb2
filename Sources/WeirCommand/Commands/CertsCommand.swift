import Foundation
import JSONCore
import TLSCore

/// The command `weir certs`.
struct CertsCommand: Subcommand {
  static let name = "certs"
  static let summary =
    "Makes a development CA and a server certificate for this machine and Google's host names."
  static let flags = [
    Flag("out", "DIR", "folder for ca.pem, server.pem and server.key (default ./certs)"),
    Flag("name", "NAME", "another host name or IP address; may be repeated"),
  ]
  static let examples = ["weir certs --out ./certs", "weir certs --out ./certs --name push.example.net"]

  private let directory: String
  private let names: [String]

  init(_ arguments: Arguments) throws(UsageFault) {
    directory = arguments.text("out", default: "./certs")
    names = arguments.all("name")
  }

  func run(_ console: Console) async throws -> ExitCode {
    do {
      let (_, isNew) = try DevelopmentCertificates.loadOrMake(
        in: directory, names: names, nowSeconds: Int64(Date().timeIntervalSince1970))
      if console.isJSON {
        console.result(["directory": .string(directory), "made": .bool(isNew)])
      } else {
        console.result(
          isNew
            ? "Made ca.pem, server.pem and server.key in \(directory)."
            : "The certificates in \(directory) are good; nothing was changed.")
      }
      return .done
    } catch {
      throw CommandFault(.wrongUsage, "\(error)")
    }
  }
}
