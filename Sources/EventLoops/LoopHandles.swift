import CUV

/// The four handles each loop has for itself.
///
/// Their `data` is nil, unlike that of a ``LoopHandle``.
struct LoopHandles {
  private let async = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
  private let prepare = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)
  private let check = UnsafeMutablePointer<uv_check_t>.allocate(capacity: 1)
  private let timer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)

  func open(_ loop: UnsafeMutablePointer<uv_loop_t>, owner: EventLoop) -> CInt {
    let code = uv_loop_init(loop)
    guard code == 0 else { return code }
    loop.pointee.data = Unmanaged.passUnretained(owner).toOpaque()
    let asyncCode = uv_async_init(loop, async, asyncFired)
    guard asyncCode == 0 else {
      uv_loop_close(loop)
      return asyncCode
    }
    // These three cannot fail.
    uv_prepare_init(loop, prepare)
    uv_prepare_start(prepare, prepareFired)
    uv_check_init(loop, check)
    uv_check_start(check, checkFired)
    uv_timer_init(loop, timer)
    async.pointee.data = nil
    prepare.pointee.data = nil
    check.pointee.data = nil
    timer.pointee.data = nil
    return 0
  }

  func wake() { uv_async_send(async) }

  var isArmed: Bool { uv_is_active(upcast(timer)) != 0 }

  func arm(_ loop: UnsafeMutablePointer<uv_loop_t>, ms: UInt64) {
    uv_update_time(loop)
    uv_timer_start(timer, timerFired, ms, 0)
  }

  func disarm() { uv_timer_stop(timer) }

  func close() {
    uv_close(upcast(async), nil)
    uv_close(upcast(prepare), nil)
    uv_close(upcast(check), nil)
    uv_close(upcast(timer), nil)
  }

  /// Undoes `open` when no thread could be made.
  func abandon(_ loop: UnsafeMutablePointer<uv_loop_t>) {
    close()
    while uv_run(loop, UV_RUN_DEFAULT) != 0 {}
    uv_loop_close(loop)
  }

  func deallocate() {
    async.deallocate()
    prepare.deallocate()
    check.deallocate()
    timer.deallocate()
  }
}

private func owner(of data: UnsafeMutableRawPointer?, _ body: (EventLoop) -> Void) {
  guard let data else { return }
  Unmanaged<EventLoop>.fromOpaque(data)._withUnsafeGuaranteedRef { body($0) }
}

private func asyncFired(_ handle: UnsafeMutablePointer<uv_async_t>?) {
  owner(of: handle?.pointee.loop.pointee.data) { $0.wokenUp() }
}

private func prepareFired(_ handle: UnsafeMutablePointer<uv_prepare_t>?) {
  owner(of: handle?.pointee.loop.pointee.data) { $0.waitBegins() }
}

private func checkFired(_ handle: UnsafeMutablePointer<uv_check_t>?) {
  owner(of: handle?.pointee.loop.pointee.data) { $0.waitEnded() }
}

/// The wake-up alone counts: due timers are looked for at the round's end.
private func timerFired(_ handle: UnsafeMutablePointer<uv_timer_t>?) {}
