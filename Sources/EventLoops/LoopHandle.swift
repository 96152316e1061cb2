import CUV

/// Something with a libuv handle that the loop closes when it stops.
///
/// While its handle is open the handle's `data` holds a reference to it.
package class LoopHandle {
  package let loop: EventLoop

  init(on loop: EventLoop) {
    loop.assertCurrent()
    self.loop = loop
  }

  /// The loop stops: close, and tell the owner.
  func loopStops() {}
}

/// A libuv handle as its base.
func upcast<Handle>(_ handle: UnsafeMutablePointer<Handle>) -> UnsafeMutablePointer<uv_handle_t> {
  UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
}

/// A libuv stream handle as its base.
func upcastStream(_ handle: UnsafeMutablePointer<uv_tcp_t>) -> UnsafeMutablePointer<uv_stream_t> {
  UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_stream_t.self)
}
