/// A file that browsers are served.
package struct WebAsset: Sendable {
  /// For `Content-Type`.
  package let type: String
  package let bytes: [UInt8]
}

/// The files that browsers are served, kept in the program itself.
package enum WebAssets {
  /// The file at a path of the HTTP listeners; nil for none.
  ///
  /// - `/weir.js`: a module that makes a page a device. `/demo`: a page that is one.
  package static func find(_ path: String) -> WebAsset? {
    switch path {
    case "/weir.js": WebAsset(type: "text/javascript; charset=utf-8", bytes: PackageResources.weir_js)
    case "/demo": WebAsset(type: "text/html; charset=utf-8", bytes: PackageResources.demo_html)
    case "/demo.js": WebAsset(type: "text/javascript; charset=utf-8", bytes: PackageResources.demo_js)
    case "/demo.css": WebAsset(type: "text/css; charset=utf-8", bytes: PackageResources.demo_css)
    case "/demo.svg": WebAsset(type: "image/svg+xml", bytes: PackageResources.demo_svg)
    default: nil
    }
  }
}
