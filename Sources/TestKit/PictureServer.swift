import Foundation

/// A web server with pictures and with all that can be wrong with them, as a Python program.
///
/// Paths: `/jpeg`, `/png`, `/gif` are right; see the script for the others.
package final class PictureServer: Sendable {
  /// `http://127.0.0.1:PORT`, or `https://localhost:PORT`.
  package let base: String
  private let child: ChildProcess
  private let directory: TemporaryDirectory

  private static let script = #"""
    import base64, http.server, json, ssl, sys, threading
    pictures = {k: base64.b64decode(v) for k, v in json.loads(sys.argv[1]).items()}
    png = pictures["png"]
    hold = threading.Event()
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def log_message(self, *arguments): print("request", self.path, flush=True)
        def start(self, kind, length, status=200, **fields):
            self.send_response(status)
            if kind: self.send_header("Content-Type", kind)
            if length is not None: self.send_header("Content-Length", str(length))
            self.send_header("Connection", "close")
            for name, value in fields.items(): self.send_header(name, value)
            self.end_headers()
            self.close_connection = True
        def answer(self, body, kind="image/png", **fields):
            self.start(kind, len(body), **fields)
            self.wfile.write(body)
        def do_GET(self):
            path = self.path[1:].split("?")[0]
            try: self.give(path)
            except (BrokenPipeError, ConnectionResetError): pass
        def give(self, path):
            if path in pictures: return self.answer(pictures[path], "image/" + path)
            if path == "untyped": return self.answer(png, "application/octet-stream")
            if path == "nothing-said": return self.answer(pictures["jpeg"], None)
            if path == "page": return self.answer(b"<html><body>no picture here</body></html>")
            if path == "sound": return self.answer(b"RIFF\x24\0\0\0WAVEfmt " + bytes(40), "image/png")
            if path == "empty": return self.answer(b"")
            if path == "short": return self.answer(b"\x89P")
            if path == "cut": return self.answer(png[:-20])
            if path == "lost": return self.start("image/png", len(png)), self.wfile.write(png[:-40])
            if path == "redirect": return self.answer(b"", status=302, Location="/png")
            if path == "loop": return self.answer(b"", status=302, Location="/loop")
            if path == "to-file": return self.answer(b"", status=302, Location="file:///etc/passwd")
            if path == "huge":
                self.start("image/png", 10_000_001 + 8)
                self.wfile.write(png[:8] + bytes(10_000_001))
                return
            if path == "endless":
                self.start("image/png", None)
                self.wfile.write(png[:8])
                while True: self.wfile.write(bytes(65536))
            if path == "lots": return self.start("image/png", 5_000_000_000)
            if path == "slow":
                self.start("image/png", len(png))
                self.wfile.write(png[:100])
                self.wfile.flush()
                hold.wait()
                return
            if path == "silent": return hold.wait()
            self.answer(b"nothing here", "text/plain", status=404)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print("ready", server.server_address[1], flush=True)
    server.serve_forever()
    """#

  private init(base: String, _ child: ChildProcess, _ directory: TemporaryDirectory) {
    self.base = base
    self.child = child
    self.directory = directory
  }

  /// - Parameter certificate: Files of a certificate and its key, for HTTPS.
  package static func start(certificate: (String, String)? = nil) async throws -> PictureServer {
    let directory = try TemporaryDirectory()
    let pictures = ["jpeg": TestPictures.jpeg, "png": TestPictures.png, "gif": TestPictures.gif]
    let json =
      "{" + pictures.map { "\"\($0)\":\"\(Data($1).base64EncodedString())\"" }.joined(separator: ",") + "}"
    var arguments = ["python3", "-c", script, json]
    if let certificate { arguments += [certificate.0, certificate.1] }
    let child = try ChildProcess("/usr/bin/env", arguments, errors: directory.path + "/log")
    let port = try await child.output.wait(for: "the picture server", within: .seconds(20)) { output in
      output.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().first {
        $0.hasPrefix("ready ")
      }.map { String($0.dropFirst(6)) }
    }
    return PictureServer(
      base: certificate == nil ? "http://127.0.0.1:\(port)" : "https://localhost:\(port)", child, directory)
  }

  /// Waits until a path was asked for.
  package func waitForRequest(_ path: String) async throws {
    _ = try await child.output.wait(for: "a request for \(path)", within: .seconds(20)) { output in
      output.text.contains("request \(path)\n") ? true : nil
    }
  }

  package func stop() { child.signal(SIGKILL) }
}
