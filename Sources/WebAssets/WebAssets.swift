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

  /// A file of the console, for the administration listener alone; nil for none.
  package static func console(_ path: String) -> WebAsset? {
    switch path {
    case "/console/api.js": script(PackageResources.api_js)
    case "/console/app.js": script(PackageResources.app_js)
    case "/console/chart.js": script(PackageResources.chart_js)
    case "/console/compose.js": script(PackageResources.compose_js)
    case "/console/console.css": style(PackageResources.console_css)
    case "/": page(PackageResources.console_html)
    case "/console/devices.js": script(PackageResources.devices_js)
    case "/console/dom.js": script(PackageResources.dom_js)
    case "/console/faults.js": script(PackageResources.faults_js)
    case "/console/feed.js": script(PackageResources.feed_js)
    case "/console/format.js": script(PackageResources.format_js)
    case "/console/lists.js": script(PackageResources.lists_js)
    case "/console/messages.js": script(PackageResources.messages_js)
    case "/console/nodes.js": script(PackageResources.nodes_js)
    case "/console/overview.js": script(PackageResources.overview_js)
    case "/console/payload.js": script(PackageResources.payload_js)
    case "/console/phone.js": script(PackageResources.phone_js)
    case "/console/phones.css": style(PackageResources.phones_css)
    case "/console/phones.js": script(PackageResources.phones_js)
    case "/console/projects.js": script(PackageResources.projects_js)
    case "/console/shell.js": script(PackageResources.shell_js)
    case "/console/targets.js": script(PackageResources.targets_js)
    default: nil
    }
  }

  private static func page(_ bytes: [UInt8]) -> WebAsset {
    WebAsset(type: "text/html; charset=utf-8", bytes: bytes)
  }
  private static func style(_ bytes: [UInt8]) -> WebAsset {
    WebAsset(type: "text/css; charset=utf-8", bytes: bytes)
  }
  private static func script(_ bytes: [UInt8]) -> WebAsset {
    WebAsset(type: "text/javascript; charset=utf-8", bytes: bytes)
  }
}
