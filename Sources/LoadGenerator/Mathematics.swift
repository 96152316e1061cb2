import Glibc

/// The natural logarithm.
func logarithm(_ value: Double) -> Double { log(value) }

/// Processor time of this thread in nanoseconds.
func threadProcessorNs() -> Int64 {
  var spec = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spec)
  return Int64(spec.tv_sec) &* 1_000_000_000 &+ Int64(spec.tv_nsec)
}
