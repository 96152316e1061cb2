/// Where a part of the server writes what happened: fixed sentences, with the values beside them.
///
/// A value: copy it, and give each stream its own with ``with(_:)``. Sentences are `StaticString`, so no payload,
/// token or key can become part of one; secrets among the fields go through ``Redacted``. When a level is off,
/// a call costs one relaxed load and the fields are not made.
package struct Log: Sendable {
  private let sink: LogSink
  private let context: LogFields

  package init(sink: LogSink, context: LogFields = LogFields()) {
    self.sink = sink
    self.context = context
  }

  /// A log that writes nothing.
  package static let off = Log(sink: LogSink(threshold: nil, output: { _ in true }))

  /// The same log with more fields on every line.
  package func with(_ fields: LogFields) -> Log {
    Log(sink: sink, context: context.appending(fields))
  }

  /// Whether a line of `level` would be written, were it not for the rate limit.
  package func isOn(_ level: LogLevel) -> Bool { sink.isOn(level) }

  package func trace(_ sentence: StaticString, _ fields: @autoclosure () -> LogFields = LogFields()) {
    write(.trace, sentence, fields)
  }

  package func debug(_ sentence: StaticString, _ fields: @autoclosure () -> LogFields = LogFields()) {
    write(.debug, sentence, fields)
  }

  package func info(_ sentence: StaticString, _ fields: @autoclosure () -> LogFields = LogFields()) {
    write(.info, sentence, fields)
  }

  package func warning(_ sentence: StaticString, _ fields: @autoclosure () -> LogFields = LogFields()) {
    write(.warning, sentence, fields)
  }

  package func error(_ sentence: StaticString, _ fields: @autoclosure () -> LogFields = LogFields()) {
    write(.error, sentence, fields)
  }

  private func write(_ level: LogLevel, _ sentence: StaticString, _ fields: () -> LogFields) {
    guard sink.isOn(level), let suppressed = sink.admit(sentence) else { return }
    sink.write(level, sentence, context, fields(), suppressed: suppressed)
  }
}
