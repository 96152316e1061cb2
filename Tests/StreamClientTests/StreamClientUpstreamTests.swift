import Synchronization
import Testing

@testable import StreamClient

struct StreamClientUpstreamTests {
  private struct HandlerFault: Error {}

  @Test func placeholderForUpstream() {}
}
