import StreamClient

/// How the messages of a bulk job reach the server.
protocol BulkSender: Sendable {
  /// Sends all that the source gives, and returns when each has ended.
  ///
  /// - Parameter ended: Called with what has ended, one call at a time.
  func send(_ source: LineSource, ended: @escaping @Sendable ([BulkOutcome]) -> Void) async throws
  /// Says goodbye to the server.
  func close() async
}

/// Over HTTP.
struct HTTPBulkSender: BulkSender {
  let sender: HTTPSender

  func send(_ source: LineSource, ended: @escaping @Sendable ([BulkOutcome]) -> Void) async throws {
    var outcomes = sender.send(contentsOf: source).makeAsyncIterator()
    while let batch = try await outcomes.nextBatch() { ended(batch) }
  }

  func close() async { await sender.close() }
}

/// Over the stream protocol: one client, whose streams share the messages.
struct StreamBulkSender: BulkSender {
  let client: StreamClient

  func send(_ source: LineSource, ended: @escaping @Sendable ([BulkOutcome]) -> Void) async throws {
    var outcomes = client.send(contentsOf: source).makeAsyncIterator()
    while let batch = try await outcomes.nextBatch() { ended(batch) }
  }

  func close() async { await client.close() }
}
