// swift-tools-version: 6.2
import PackageDescription

/// Settings of every Swift target: Swift 6 mode, explicit existentials and imports, no warning left.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

func library(_ name: String, _ dependencies: [String] = []) -> Target {
  .target(
    name: name, dependencies: dependencies.map { .init(stringLiteral: $0) }, swiftSettings: strict)
}

func program(_ name: String, _ dependencies: [String], path: String? = nil) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies.map { .init(stringLiteral: $0) }, path: path,
    swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [String], resources: [Resource]? = nil) -> Target {
  .testTarget(
    name: name, dependencies: dependencies.map { .init(stringLiteral: $0) }, resources: resources,
    swiftSettings: strict)
}

/// What the console is made of; see docs/decisions/0026-console-without-a-framework.md.
let consoleFiles = [
  "api.js",
  "app.js",
  "chart.js",
  "compose.js",
  "console.css",
  "console.html",
  "devices.js",
  "dom.js",
  "faults.js",
  "feed.js",
  "format.js",
  "lists.js",
  "messages.js",
  "nodes.js",
  "overview.js",
  "payload.js",
  "phone.js",
  "phones.css",
  "phones.js",
  "projects.js",
  "shell.js",
  "targets.js",
]

// The order is the direction of imports: a target uses only what stands above it.
// docs/ARCHITECTURE.md draws it, Tests/TidyTests holds it.
let package = Package(
  name: "Weir",
  products: [
    .library(name: "ConnectionServer", targets: ["ConnectionServer"]),
    .library(name: "StreamClient", targets: ["StreamClient"]),
    .library(name: "DeviceRuntime", targets: ["DeviceRuntime"]),
    .library(name: "DesktopNotifications", targets: ["DesktopNotifications"]),
    .library(name: "TestKit", targets: ["TestKit"]),
    .executable(name: "weir", targets: ["weir"]),
  ],
  targets: [
    // C libraries
    .systemLibrary(name: "CUV", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CXML2", pkgConfig: "libxml-2.0", providers: [.apt(["libxml2-dev"])]),
    .systemLibrary(name: "CHTTPParser", providers: [.apt(["libhttp-parser-dev"])]),
    .systemLibrary(name: "CNghttp2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CZ", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(name: "CDBus", pkgConfig: "dbus-1", providers: [.apt(["libdbus-1-dev"])]),
    .systemLibrary(name: "CLinux"),

    // Basics and seams
    library("Bytes"),
    library("Seams"),
    // What browsers are served, as bytes within the program.
    .target(
      name: "WebAssets",
      resources: [
        .embedInCode("Files/weir.js"), .embedInCode("Files/demo.html"), .embedInCode("Files/demo.js"),
        .embedInCode("Files/demo.css"), .embedInCode("Files/demo.svg"),
      ] + consoleFiles.map { .embedInCode("Files/console/\($0)") }, swiftSettings: strict),

    // Cores: bytes and values in, bytes and actions out
    library("JSONCore", ["Bytes"]),
    library("XMLCore", ["Bytes", "CXML2"]),
    library("XMPPCore", ["XMLCore", "Bytes", "Seams"]),
    library("HTTPCore", ["Bytes", "Seams", "CHTTPParser", "CNghttp2", "CZ"]),
    library("WebSocketCore", ["HTTPCore", "Bytes", "Seams"]),
    library("TLSCore", ["Bytes", "COpenSSL"]),
    library("PushModel", ["JSONCore", "Bytes", "Seams"]),
    library("DeliveryCore", ["PushModel", "Bytes", "Seams"]),
    library("PushXMPP", ["XMPPCore", "PushModel", "XMLCore", "JSONCore", "Bytes"]),
    library("PushHTTP", ["HTTPCore", "PushModel", "JSONCore", "Bytes", "Seams"]),

    library("NotificationCore", ["JSONCore", "Bytes", "Seams"]),

    // Ports
    library("Stores", ["PushModel", "Bytes", "Seams"]),

    // Loops
    library("Telemetry", ["Bytes", "Seams", "CLinux"]),
    library("EventLoops", ["Bytes", "Seams", "Telemetry", "CUV", "CLinux"]),

    // Drivers
    library(
      "StoreSQLite", ["Stores", "PushModel", "Bytes", "Seams", "Telemetry", "CSQLite", "CLinux"]),
    library(
      "StorePostgres", ["Stores", "PushModel", "Bytes", "Seams", "CPQ", "CLinux"]),
    library(
      "Connections",
      [
        "EventLoops", "Telemetry", "TLSCore", "HTTPCore", "WebSocketCore", "XMPPCore", "XMLCore",
        "PushXMPP", "PushModel", "DeliveryCore", "JSONCore", "Bytes", "Seams",
      ]),

    // Products
    library(
      "ConnectionServer",
      [
        "Connections", "StorePostgres", "StoreSQLite", "Stores", "EventLoops", "Telemetry", "TLSCore",
        "HTTPCore",
        "WebSocketCore", "WebAssets", "XMPPCore", "XMLCore", "PushXMPP", "PushHTTP", "PushModel",
        "DeliveryCore",
        "JSONCore", "Bytes",
        "Seams", "CLinux",
      ]),
    library(
      "StreamClient",
      [
        "Connections", "EventLoops", "Telemetry", "TLSCore", "XMPPCore", "XMLCore", "PushXMPP",
        "PushModel", "DeliveryCore", "JSONCore", "Bytes", "Seams", "CCurl",
      ]),
    library("AppStorage", ["NotificationCore", "JSONCore", "Bytes", "Seams", "CSQLite"]),
    library("Downloads", ["NotificationCore", "Bytes", "Seams", "CCurl"]),
    library(
      "DeviceRuntime",
      [
        "NotificationCore", "AppStorage", "Downloads", "Connections", "EventLoops", "Telemetry", "TLSCore",
        "HTTPCore", "XMPPCore", "XMLCore",
        "PushXMPP", "PushModel", "DeliveryCore", "JSONCore", "Bytes", "Seams",
      ]),
    library(
      "DesktopNotifications", ["DeviceRuntime", "NotificationCore", "Bytes", "Seams", "CDBus"]),

    // Lean streams, and load tests made of them
    library(
      "LoadGenerator",
      [
        "Connections", "EventLoops", "Telemetry", "TLSCore", "WebSocketCore", "XMPPCore", "XMLCore",
        "PushXMPP", "PushModel", "JSONCore", "Bytes", "Seams", "CLinux",
      ]),

    // Programs
    library(
      "WeirCommand",
      [
        "ConnectionServer", "StreamClient", "DeviceRuntime", "DesktopNotifications", "NotificationCore",
        "LoadGenerator",
        "Connections", "EventLoops",
        "Telemetry", "TLSCore", "HTTPCore", "PushModel", "JSONCore", "Bytes", "Seams", "CLinux",
      ]),
    program("weir", ["WeirCommand"]),
    program("weir-bench", ["HTTPCore", "Telemetry", "Bytes", "Seams"], path: "Benchmarks/Cores"),
    program(
      "stream-bench",
      [
        "LoadGenerator", "Connections", "DeviceRuntime", "EventLoops", "HTTPCore", "JSONCore", "PushModel",
        "StoreSQLite", "Stores", "TLSCore", "Telemetry", "TestKit", "Bytes", "Seams", "CLinux",
      ], path: "Benchmarks/Stream"),
    program(
      "store-bench",
      [
        "StoreConformance", "StorePostgres", "StoreSQLite", "Stores", "PushModel", "Bytes", "Seams", "CLinux",
        "CSQLite",
      ], path: "Benchmarks/Store"),
    program(
      "device-memory",
      [
        "Connections", "DeliveryCore", "DeviceRuntime", "EventLoops", "PushModel", "TLSCore", "Bytes",
        "CLinux",
      ], path: "Benchmarks/Device"),
    program(
      "cluster-bench",
      [
        "TestKit", "LoadGenerator", "DeviceRuntime", "Connections", "EventLoops", "TLSCore", "Telemetry",
        "Seams",
        "CLinux",
      ], path: "Benchmarks/Cluster"),
    program(
      "peer-bench",
      [
        "TestKit", "LoadGenerator", "Connections", "DeviceRuntime", "EventLoops", "TLSCore", "Telemetry",
        "Bytes", "Seams", "CLinux",
      ], path: "Benchmarks/Peers"),
    .executableTarget(
      name: "reference-switch", dependencies: ["COpenSSL"], path: "Benchmarks/Switch",
      linkerSettings: [.linkedLibrary("pthread")]),
    program(
      "kill-run",
      [
        "TestKit", "JSONCore", "StreamClient", "DeviceRuntime", "Connections", "DeliveryCore", "EventLoops",
        "TLSCore",
        "PushModel", "Bytes", "Seams", "CLinux",
      ], path: "Benchmarks/Kill"),

    // Examples
    program("dating", ["DeviceRuntime", "DesktopNotifications", "StreamClient"], path: "Examples/Dating"),
    program("reminder", ["DeviceRuntime", "DesktopNotifications"], path: "Examples/Reminder"),

    // Beside
    library("StoreConformance", ["Stores", "PushModel", "Bytes", "Seams"]),
    library(
      "TestKit",
      [
        "ConnectionServer", "StreamClient", "DeviceRuntime", "Connections", "EventLoops", "TLSCore",
        "HTTPCore", "XMLCore", "Stores", "PushModel", "JSONCore", "Bytes", "Seams", "CLinux",
      ]),
    library(
      "Simulator",
      [
        "ConnectionServer", "StreamClient", "DeviceRuntime", "Connections", "EventLoops", "Stores",
        "PushXMPP", "PushModel", "DeliveryCore", "XMPPCore", "TLSCore", "Telemetry", "Bytes", "Seams",
      ]),
    program("simulate", ["Simulator", "JSONCore", "Bytes", "CLinux"], path: "Benchmarks/Simulate"),

    // Tests, one target a module
    tests("BytesTests", ["Bytes", "COpenSSL"]),
    tests("SeamsTests", ["Seams"]),
    tests("JSONCoreTests", ["JSONCore", "Bytes"]),
    tests("XMLCoreTests", ["XMLCore", "Bytes", "Seams", "CXML2"]),
    tests("XMPPCoreTests", ["XMPPCore", "XMLCore", "Bytes", "Seams"]),
    tests("HTTPCoreTests", ["HTTPCore", "Bytes", "Seams", "CNghttp2", "CZ"]),
    tests("WebSocketCoreTests", ["WebSocketCore", "HTTPCore", "Bytes", "Seams", "COpenSSL"]),
    tests("TLSCoreTests", ["TLSCore", "Bytes", "COpenSSL"]),
    tests("PushModelTests", ["PushModel", "JSONCore", "Bytes", "Seams"]),
    tests("NotificationCoreTests", ["NotificationCore", "JSONCore", "Bytes", "Seams"]),
    tests("DeliveryCoreTests", ["DeliveryCore", "PushModel", "Bytes", "Seams"]),
    tests(
      "PushXMPPTests", ["PushXMPP", "XMPPCore", "XMLCore", "PushModel", "JSONCore", "Bytes"]),
    tests("PushHTTPTests", ["PushHTTP", "HTTPCore", "PushModel", "JSONCore", "Bytes", "Seams"]),
    program(
      "store-crasher", ["StoreSQLite", "Stores", "PushModel", "Bytes", "Seams"],
      path: "Tests/StoreCrasher"),
    .target(name: "CFaultVFS", dependencies: ["CSQLite"], path: "Tests/CFaultVFS"),
    tests(
      "StoreTests",
      [
        "StoreConformance", "StorePostgres", "StoreSQLite", "Stores", "TestKit", "PushModel", "Bytes",
        "Seams",
        "CSQLite", "CFaultVFS", "store-crasher",
      ]),
    tests("TelemetryTests", ["Telemetry", "Bytes", "Seams"]),
    tests("EventLoopsTests", ["EventLoops", "Telemetry", "Bytes", "Seams", "CLinux"]),
    tests(
      "ConnectionsTests",
      ["Connections", "EventLoops", "TLSCore", "WebSocketCore", "Bytes", "Seams", "CLinux"]),
    tests(
      "ConnectionServerTests",
      [
        "ConnectionServer", "TestKit", "Connections", "Stores", "StoreSQLite", "EventLoops",
        "Telemetry", "TLSCore", "HTTPCore", "WebSocketCore", "XMPPCore", "XMLCore", "PushXMPP", "PushHTTP",
        "PushModel",
        "DeliveryCore", "JSONCore", "Bytes", "Seams", "CLinux",
      ]),
    tests(
      "StreamClientTests",
      [
        "StreamClient", "ConnectionServer", "TestKit", "Connections", "EventLoops", "TLSCore", "HTTPCore",
        "XMPPCore", "XMLCore", "PushXMPP", "PushModel", "DeliveryCore", "JSONCore", "Bytes", "Seams",
      ]),
    program("device-crasher", ["DeviceRuntime"], path: "Tests/DeviceCrasher"),
    tests(
      "DeviceRuntimeTests",
      [
        "device-crasher", "DeviceRuntime", "NotificationCore", "AppStorage", "Downloads", "ConnectionServer",
        "StreamClient", "TestKit", "Connections", "EventLoops",
        "TLSCore", "XMPPCore", "XMLCore", "PushModel", "DeliveryCore", "JSONCore", "Bytes", "Seams",
      ]),
    tests(
      "DesktopNotificationsTests",
      [
        "DesktopNotifications", "DeviceRuntime", "NotificationCore", "StreamClient", "TestKit", "Bytes",
        "Seams",
      ]),
    tests("LoadGeneratorTests", ["LoadGenerator", "Seams"]),
    tests(
      "WeirCommandTests",
      [
        "WeirCommand", "LoadGenerator", "StreamClient", "Telemetry", "TestKit", "PushModel", "JSONCore",
        "Bytes", "Seams",
      ]),
    tests(
      "IntegrationTests",
      [
        "TestKit", "ConnectionServer", "StreamClient", "DeviceRuntime", "Connections", "EventLoops",
        "WebSocketCore", "JSONCore", "Bytes", "Seams", "weir",
      ]),
    tests("ExamplesTests", ["TestKit", "weir", "dating", "reminder"]),
    tests(
      "SimulatorTests",
      ["Simulator", "simulate", "ConnectionServer", "Stores", "PushModel", "DeliveryCore", "Bytes", "Seams"]),
    tests("TidyTests", []),
  ]
)
