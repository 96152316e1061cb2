import Foundation

/// Settings and accounts of the other servers, in a folder of their own.
struct PeerFiles {
  let directory: String
  let port: UInt16
  let certificate: String
  let key: String
  let devices: Int
  /// Accounts of senders.
  private let senders = 100

  private func write(_ text: String, _ name: String) throws {
    try text.write(toFile: directory + "/" + name, atomically: true, encoding: .utf8)
  }

  // MARK: Prosody

  /// Only what the task needs is loaded; files as storage, since that is what Debian's package brings along.
  func writeProsody() throws {
    try write(
      """
      run_as_root = true
      pidfile = "\(directory)/prosody.pid"
      data_path = "\(directory)/data"
      network_backend = "epoll"
      modules_enabled = { "saslauth", "tls", "smacks", "offline" }
      modules_disabled = { "s2s" }
      c2s_ports = {}
      s2s_ports = {}
      c2s_direct_tls_ports = { \(port) }
      c2s_direct_tls_interfaces = { "127.0.0.1" }
      ssl = { certificate = "\(certificate)", key = "\(key)" }
      c2s_direct_tls_ssl = { certificate = "\(certificate)", key = "\(key)" }
      authentication = "internal_plain"
      storage = "internal"
      smacks_hibernation_time = 0
      gc = { mode = "generational" }
      log = { warn = "\(directory)/log" }
      VirtualHost "localhost"

      """, "prosody.cfg.lua")
    let accounts = directory + "/data/localhost/accounts"
    try FileManager.default.createDirectory(atPath: accounts, withIntermediateDirectories: true)
    for name in names {
      try "return {\n\t[\"password\"] = \"secret\";\n};\n".write(
        toFile: accounts + "/\(name).dat", atomically: false, encoding: .utf8)
    }
  }

  private var names: [String] {
    (0..<devices).map { "d\($0)" } + (0..<senders).map { "s\($0)" }
  }

  // MARK: ejabberd

  func writeEjabberd(isMQTT: Bool) throws {
    try write(
      try String(contentsOfFile: certificate, encoding: .utf8) + String(contentsOfFile: key, encoding: .utf8),
      "both.pem")
    let listener =
      isMQTT
      ? """
      module: mod_mqtt
          backlog: 1000
      """
      : """
      module: ejabberd_c2s
          max_stanza_size: 262144
          backlog: 1000
      """
    try write(
      """
      hosts: [localhost]
      loglevel: error
      certfiles: ["\(directory)/both.pem"]
      acme:
        auto: false
      auth_method: internal
      auth_password_format: plain
      disable_sasl_mechanisms: [digest-md5, X-OAUTH2, SCRAM-SHA-1, SCRAM-SHA-256, SCRAM-SHA-512]
      listen:
        -
          port: \(port)
          ip: 127.0.0.1
          tls: true
          \(listener)
      modules:
        mod_offline:
          access_max_user_messages: many
          store_groupchat: false
        mod_stream_mgmt:
          max_ack_queue: infinity
          resume_timeout: 0
        mod_mqtt:
          max_queue: infinity
          session_expiry: 1 hour
      shaper_rules:
        many:
          infinity: all

      """, "ejabberd.yml")
    try FileManager.default.createDirectory(
      atPath: directory + "/spool", withIntermediateDirectories: true)
  }

  /// Without a node name, so that no port mapper is started.
  var ejabberdArguments: [String] {
    let code =
      (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/x86_64-linux-gnu"))?
      .filter { $0.hasPrefix("ejabberd-") }.sorted().last ?? "ejabberd"
    func accounts(_ letter: String, _ count: Int) -> String {
      "lists:foreach(fun(I) -> ejabberd_auth:try_register(iolist_to_binary([\"\(letter)\", integer_to_binary(I)]), "
        + "<<\"localhost\">>, <<\"secret\">>) end, lists:seq(0, \(count - 1)))"
    }
    return [
      "-noinput", "+K", "true", "+P", "250000", "+Q", "65536", "-pa",
      "/usr/lib/x86_64-linux-gnu/\(code)/ebin", "-mnesia", "dir", "\"\(directory)/spool\"", "-eval",
      "{ok, _} = application:ensure_all_started(ejabberd), \(accounts("d", devices)), \(accounts("s", senders)), file:write_file(\"\(directory)/prepared\", <<>>).",
    ]
  }

  // MARK: Mosquitto

  /// Its store is written every second: the shortest it knows beside one write a change.
  func writeMosquitto() throws {
    try write(
      """
      listener \(port) 127.0.0.1
      certfile \(certificate)
      keyfile \(key)
      allow_anonymous true
      persistence true
      persistence_location \(directory)/
      autosave_interval 1
      max_inflight_messages 0
      max_queued_messages 0
      set_tcp_nodelay true
      log_dest none
      user root

      """, "mosquitto.conf")
  }
}
