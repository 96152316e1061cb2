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
      // Files for browsers, as bytes.
      "WebAssets": [],
      // Cores: they know no socket, file, task, clock or log.
      "JSONCore": ["Bytes"],
      "XMLCore": ["Bytes", "CXML2"],
      "TLSCore": ["Bytes", "COpenSSL"],
      "HTTPCore": basics.union(["CHTTPParser", "CNghttp2", "CZ"]),
      "WebSocketCore": basics.union(["HTTPCore"]),
      "XMPPCore": basics.union(["XMLCore"]),
      "PushModel": basics.union(["JSONCore"]),
      "DeliveryCore": basics.union(["PushModel"]),
      "PushXMPP": basics.union(["XMPPCore", "XMLCore", "PushModel", "JSONCore"]),
      "NotificationCore": basics.union(["JSONCore"]),
      "PushHTTP": basics.union(["HTTPCore", "PushModel", "JSONCore"]),
      // Port: knows messages, never stanzas or sockets.
      "Stores": basics.union(["PushModel"]),
      // Loops
      "Telemetry": basics.union(["CLinux"]),
      "EventLoops": basics.union(["Telemetry", "CUV", "CLinux"]),
      // Drivers
      "StoreSQLite": basics.union(["Stores", "PushModel", "Telemetry", "CSQLite", "CLinux"]),
      "StorePostgres": basics.union(["Stores", "PushModel", "CPQ", "CLinux"]),
      "Connections": client.subtracting(["Connections"]).union(["HTTPCore", "WebSocketCore"]),
      // Products: client and device know nothing of the server.
      "ConnectionServer": client.union([
        "HTTPCore", "WebSocketCore", "WebAssets", "PushHTTP", "Stores", "StorePostgres", "StoreSQLite",
        "CLinux",
      ]),
      // Dispatch: a queue on which curl may wait.
      "StreamClient": client.union(["CCurl", "Dispatch"]),
      // An app's own data and downloads, on the device's side.
      "AppStorage": basics.union(["NotificationCore", "JSONCore", "CSQLite"]),
      "Downloads": basics.union(["NotificationCore", "CCurl"]),
      "DeviceRuntime": client.union(["HTTPCore", "NotificationCore", "AppStorage", "Downloads"]),
      "DesktopNotifications": basics.union(["DeviceRuntime", "NotificationCore", "CDBus"]),
      // Lean streams, and load tests made of them: client side alone.
      "LoadGenerator": client.union(["WebSocketCore", "CLinux"]),
      // Programs
      "WeirCommand": client.union([
        "ConnectionServer", "StreamClient", "LoadGenerator", "DeviceRuntime", "DesktopNotifications",
        "NotificationCore",
        "HTTPCore", "CLinux",
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
