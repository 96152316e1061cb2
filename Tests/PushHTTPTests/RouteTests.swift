import HTTPCore
import JSONCore
import PushHTTP
import Testing

struct RouteTests {
  let table = RouteTable()

  @Test(arguments: HTTPRoute.allCases)
  func everyRouteIsFoundByItsOwnTemplate(_ route: HTTPRoute) {
    let target = RequestTarget(route.template.replacing("{", with: "").replacing("}", with: ""))
    #expect(table.match(route.method, target.path) == .found(route, route.parameters))
    if route.method == "GET" {
      #expect(table.match("HEAD", target.path) == .found(route, route.parameters))
    }
    guard case .otherMethods(let methods) = table.match("PATCH", target.path) else {
      Issue.record("\(route) takes PATCH")
      return
    }
    #expect(methods.contains(route.method))
    #expect(table.match(route.method, target.path + ["a", "b", "c", "d"]) == .unknown)
  }

  @Test func targetsAreTakenApart() {
    let target = RequestTarget("https://iid.googleapis.com/iid/info/a%3Ab?details=true&x=a+b%26")
    #expect(target.path == ["iid", "info", "a:b"])
    #expect(target.query == ["details": "true", "x": "a b&"])
    #expect(RequestTarget("/iid/info/a:b").path == ["iid", "info", "a:b"])
    #expect(RequestTarget("https://x").path == [])
    #expect(RequestTarget("//a//b/").path == ["a", "b"])
    #expect(RequestTarget("/a%").path == ["a%"])
    #expect(RequestTarget("/a%+1").path == ["a%+1"])
    #expect(!RequestTarget("/a?prettyPrint=false").isPretty)
    #expect(RequestTarget("/a").isPretty)
  }

  // MARK: OpenAPI

  private let document = OpenAPIDocument.json(server: "https://localhost:8443")

  @Test func theDescriptionHoldsEveryRouteAndNoOther() throws {
    let paths = try #require(document["paths"]?.members)
    var described: Set<String> = []
    for path in paths {
      for operation in path.value.members ?? [] { described.insert("\(operation.name) \(path.name)") }
    }
    #expect(described == Set(HTTPRoute.allCases.map { "\($0.method.lowercased()) \($0.template)" }))
    var names = paths.flatMap { $0.value.members ?? [] }.compactMap { $0.value["operationId"]?.string }
    #expect(names.count == HTTPRoute.allCases.count)
    names.sort()
    #expect(names == HTTPRoute.allCases.map(\.rawValue).sorted())
  }

  @Test func everyReferenceAndEverySecuritySchemeIsThere() throws {
    let schemas = Set((document["components"]?["schemas"]?.members ?? []).map(\.name))
    var open = [document]
    var count = 0
    while let value = open.popLast() {
      if let reference = value["$ref"]?.string {
        count += 1
        #expect(schemas.contains(String(reference.dropFirst("#/components/schemas/".count))), "\(reference)")
      }
      open += value.members?.map(\.value) ?? value.array ?? []
    }
    #expect(count > 30)
    let schemes = Set((document["components"]?["securitySchemes"]?.members ?? []).map(\.name))
    for path in document["paths"]?.members ?? [] {
      for operation in path.value.members ?? [] {
        for security in operation.value["security"]?.array ?? [] {
          #expect(schemes.isSuperset(of: security.members?.map(\.name) ?? []))
        }
      }
    }
  }

  @Test func everyParameterOfAPathIsDescribed() throws {
    for route in HTTPRoute.allCases {
      let operation = try #require(document["paths"]?[route.template]?[route.method.lowercased()])
      let described = (operation["parameters"]?.array ?? []).filter { $0["in"] == "path" }
      #expect(described.compactMap { $0["name"]?.string } == route.parameters)
    }
  }
}
