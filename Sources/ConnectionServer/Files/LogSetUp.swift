import Telemetry

/// Makes the server's log from its settings.
enum LogSetUp {
  static func make(_ configuration: ServerConfiguration) throws(ServerFault) -> Log {
    if configuration.logLevel == "off" { return .off }
    guard let level = LogLevel.allCases.first(where: { "\($0)" == configuration.logLevel }) else {
      throw ServerFault(
        "The log level \"\(configuration.logLevel)\" is not known: use trace, debug, info, warning, error or off."
      )
    }
    return Log(sink: LogSink(threshold: level, form: configuration.logJSON ? .json : .text))
  }
}
