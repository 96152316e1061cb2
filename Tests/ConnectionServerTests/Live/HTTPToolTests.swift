import ConnectionServer
import Foundation
import JSONCore
import TestKit
import Testing

/// HTTP/1.1 and HTTP/2 by the tools that people use: curl, h2load, wrk.
@Suite struct HTTPToolTests {
  private static func path(_ tool: String) -> String? {
    ["/usr/bin/", "/usr/local/bin/"].map { $0 + tool }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
  }
  static let hasCurl = path("curl") != nil
  static let hasLoad = path("h2load") != nil && path("wrk") != nil

  private struct Tool: Error { var text: String }

  private func run(
    _ tool: String, _ arguments: [String], in directory: TemporaryDirectory
  ) async throws -> String {
    let path = try #require(Self.path(tool))
    let child = try ChildProcess(path, arguments, errors: directory.path + "/errors")
    let (code, text) = try await child.waitForExit(within: .seconds(60))
    guard code == 0 else { throw Tool(text: "\(tool) exit \(code): \(text)\(child.errorText)") }
    return text
  }

  @Test(.enabled(if: hasCurl), arguments: ["--http1.1", "--http2"])
  func curlRegistersSendsCompressedAndIsRefusedInOrder(_ version: String) async throws {
    let directory = try TemporaryDirectory()
    try await TestServer.run { address in
      let url = "https://localhost:\(address.https)"
      let common = [
        "-sS", version, "--cacert", address.certificateAuthority, "-o", "-", "-w",
        "\n%{http_code} %{http_version}",
      ]
      let key = try address.secret("api-key")
      let body = directory.path + "/body"
      try Data("{\"app\":\"org.example.app\"}".utf8).write(to: URL(fileURLWithPath: body))
      _ = try await run("gzip", ["-kf", body], in: directory)
      let register = url + "/v1/projects/demo/registrations"
      let expected = version == "--http2" ? "200 2" : "200 1.1"
      for more in [
        ["--data-binary", "@\(body)"], ["--data-binary", "@\(body).gz", "-H", "Content-Encoding: gzip"],
        ["-H", "Transfer-Encoding: chunked", "--data-binary", "@\(body)"],
        ["-H", "Expect: 100-continue", "--data-binary", "@\(body)"],
      ] where !(version == "--http2" && more.contains("Transfer-Encoding: chunked")) {
        let text = try await run(
          "curl", common + ["-H", "x-goog-api-key: \(key)"] + more + [register], in: directory)
        #expect(text.hasSuffix(expected) && text.contains("device_secret"), "\(more): \(text)")
      }
      let big = directory.path + "/big"
      try Data(count: 1 << 20 + 1).write(to: URL(fileURLWithPath: big))
      let refused = try await run("curl", common + ["--data-binary", "@\(big)", register], in: directory)
      #expect(refused.contains("\n413 "))
      // The connection is used again.
      let twice = try await run("curl", common + [url + "/1", url + "/2", "-v"], in: directory)
      #expect(twice.matches(of: #/NOT_FOUND/#).count == 2)
      let noBody = try await run("curl", common + ["-I", url + "/1"], in: directory)
      #expect(noBody.contains("content-length: ") && !noBody.contains("NOT_FOUND"))
    }
  }

  @Test(.enabled(if: hasLoad))
  func loadToolsSendWithoutAnError() async throws {
    let directory = try TemporaryDirectory()
    try await TestServer.run {
      $0.acceptsAnyBearer = true
    } _: { address in
      let device = try await address.registerDevice()
      let url = "https://localhost:\(address.https)/v1/projects/demo/messages:send"
      let message: JSONValue = ["message": ["token": .string(device.token), "android": ["ttl": "0s"]]]
      let body = directory.path + "/message"
      try Data(message.bytes).write(to: URL(fileURLWithPath: body))
      for version in [["-m", "100"], ["--h1", "-m", "1"]] {
        let text = try await run(
          "h2load",
          [
            "-n", "3000", "-c", "8", "-d", body, "-H", "Authorization: Bearer any", "-H",
            "Content-Type: application/json",
          ]
            + version + [url], in: directory)
        #expect(text.contains("3000 succeeded, 0 failed, 0 errored, 0 timeout"), "\(text)")
      }
      let script = directory.path + "/post.lua"
      try Data(
        """
        wrk.method = "POST"
        wrk.headers["Authorization"] = "Bearer any"
        wrk.headers["Content-Type"] = "application/json"
        local file = io.open("\(body)")
        wrk.body = file:read("*a")
        file:close()
        """.utf8
      ).write(to: URL(fileURLWithPath: script))
      let text = try await run("wrk", ["-c", "20", "-t", "1", "-d", "1", "-s", script, url], in: directory)
      #expect(
        text.contains("requests in") && !text.contains("Non-2xx") && !text.contains("Socket errors"),
        "\(text)")
    }
  }
}
