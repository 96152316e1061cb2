// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that its flags stay out of the product. The cores are compiled once more from the
// same sources (Sources/ holds links to them): coverage counters have to be in the code under test, and
// `package` declarations are reachable in one package only. `run.sh` sets FUZZ_RUNTIME.

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]
let runtime = Context.environment["FUZZ_RUNTIME"] ?? "libclang_rt.fuzzer_no_main.a"

/// Code under test, with coverage counters.
func core(_ name: String, _ dependencies: [String] = []) -> Target {
  .target(
    name: name, dependencies: dependencies.map { .init(stringLiteral: $0) },
    swiftSettings: strict + [.unsafeFlags(["-sanitize=fuzzer,address", "-assert-config", "Debug"])])
}

/// A fuzz target: an executable around libFuzzer's driver.
func fuzz(_ name: String, _ dependencies: [String]) -> Target {
  .executableTarget(
    name: name, dependencies: (dependencies + ["CFuzz"]).map { .init(stringLiteral: $0) },
    swiftSettings: strict + [.unsafeFlags(["-sanitize=address"])],
    linkerSettings: [.unsafeFlags(["-sanitize=address", runtime]), .linkedLibrary("stdc++")])
}

let package = Package(
  name: "Fuzzing",
  targets: [
    .systemLibrary(name: "CXML2", pkgConfig: "libxml-2.0"),
    .target(name: "CFuzz"),
    core("Bytes"),
    core("Seams"),
    core("XMLCore", ["Bytes", "CXML2"]),
    core("XMPPCore", ["XMLCore", "Bytes", "Seams"]),
    fuzz("FuzzXMLStream", ["XMLCore", "Bytes", "Seams"]),
    fuzz("FuzzServerStream", ["XMPPCore", "XMLCore", "Bytes", "Seams"]),
  ]
)
