import Telemetry

/// Makes the server's log from its settings.
enum LogSetUp {
  struct Fault: Error { var message: String }

  static func make(_ configuration: ServerConfiguration) throws(Fault) -> Log {
    if configuration.logLevel == "off" { return .off }
    guard let level = LogLevel(name: configuration.logLevel) else {
      throw Fault(
        message: "The log level \"\(configuration.logLevel)\" is not known: use trace, debug, info, warning, error or off.")
    }
    return Log(sink: LogSink(threshold: level, form: configuration.logJSON ? .json : .text))
  }
}
