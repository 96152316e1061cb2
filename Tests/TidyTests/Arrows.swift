/// Which module may import which, by hand and on purpose apart from the manifest: a dependency that is added
/// there must be argued here as well.
///
/// docs/ARCHITECTURE.md draws it.
enum Arrows {
  static let allowed: [String: Set<String>] = {
    let basics: Set<String> = ["Bytes", "Seams"]
    let client: Set<String> = basics.union([
      "Connections", "EventLoops", "Telemetry", "TLSCore", "XMPPCore", "XMLCore", "PushXMPP", "PushModel",
      "DeliveryCore", "JSONCore",
    ])
    return [
      // Basics and seams
      "Bytes": [],
      "Seams": ["Bytes"],
      // Cores: they know no socket, file, task, clock or log.
      "JSONCore": ["Bytes"],
      "XMLCore": ["Bytes", "CXML2"],
      "TLSCore": ["Bytes", "COpenSSL"],
      "HTTPCore": basics.union(["CHTTPParser", "CNghttp2", "CZ"]),
      "XMPPCore": basics.union(["XMLCore"]),
      "PushModel": basics.union(["JSONCore"]),
      "DeliveryCore": basics.union(["PushModel"]),
      "PushXMPP": basics.union(["XMPPCore", "XMLCore", "PushModel", "JSONCore"]),
      "PushHTTP": basics.union(["HTTPCore", "PushModel", "JSONCore"]),
      // Port: knows messages, never stanzas or sockets.
      "Stores": basics.union(["PushModel"]),
      // Loops
      "Telemetry": basics.union(["CLinux"]),
      "EventLoops": basics.union(["Telemetry", "CUV", "CLinux"]),
      // Drivers
      "StoreSQLite": basics.union(["Stores", "PushModel", "Telemetry", "CSQLite", "CLinux"]),
      "StorePostgres": basics.union(["Stores", "PushModel", "CPQ", "CLinux"]),
      "Connections": client.subtracting(["Connections"]).union(["HTTPCore"]),
      // Products: client and device know nothing of the server.
      "ConnectionServer": client.union([
        "HTTPCore", "PushHTTP", "Stores", "StorePostgres", "StoreSQLite", "CLinux",
      ]),
      "StreamClient": client.union(["CCurl"]),
      "DeviceRuntime": client.union(["HTTPCore"]),
      // Programs
      "WeirCommand": client.union([
        "ConnectionServer", "StreamClient", "DeviceRuntime", "HTTPCore", "CLinux",
        // Signals as calls on a queue.
        "Dispatch",
      ]),
      "weir": ["WeirCommand"],
      // Beside
      "StoreConformance": basics.union(["Stores", "PushModel"]),
      "Simulator": client.subtracting(["XMLCore", "JSONCore"]).union([
        "ConnectionServer", "StreamClient", "DeviceRuntime", "Stores",
      ]),
      "TestKit": basics.union([
        "ConnectionServer", "StreamClient", "DeviceRuntime", "Connections", "EventLoops", "TLSCore",
        "HTTPCore", "XMLCore", "Stores", "PushModel", "JSONCore",
        // Processes; a thread of its own that starts them.
        "CLinux", "Dispatch",
      ]),
    ]
  }()

  /// Parts of the toolchain that every module may use.
  static let toolchain: Set<String> = ["Swift", "Glibc", "Synchronization", "_Concurrency"]

  /// Modules that may also use Foundation: it is large, slow on the paths that matter, and has no place in a core.
  static let withFoundation: Set<String> = [
    "ConnectionServer", "WeirCommand", "weir", "TestKit", "StoreConformance",
  ]
}
