/// Seeds that once failed, with what they found.
enum RegressionSeeds {
  static let all: [UInt64] = []
}
