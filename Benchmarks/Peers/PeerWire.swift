import Bytes
import Connections
import EventLoops
import Foundation
import TLSCore

/// What is needed to reach a server under test.
struct PeerAddress {
  var port: UInt16
  var context: TLSContext
  /// Weir alone: who the sender is, and the devices as registered.
  var senderID = ""
  var serverKey = ""
  var devices: [(id: String, secret: String, token: String)] = []
}

/// One TLS stream of a sender or a device, in the words of its server.
///
/// Belongs to its loop. Messages are numbered; numbers are unique in a run.
class PeerWire {
  enum Role {
    case sender(Int)
    case device(Int)
  }

  let role: Role
  let address: PeerAddress
  let loop: EventLoop
  var ready: () -> Void = {}
  var failed: (String) -> Void = { _ in }
  /// The server took charge of the message.
  var acked: (Int) -> Void = { _ in }
  /// The message came to this device.
  var delivered: (Int) -> Void = { _ in }

  init(_ role: Role, _ address: PeerAddress, on loop: EventLoop) {
    self.role = role
    self.address = address
    self.loop = loop
  }

  func connect() {}
  /// Writes a message; the server may wait for ``flush()``.
  func publish(_ number: Int, to device: Int) {}
  func flush() {}
  /// Ends in order, so that the server knows the device is away.
  func close() {}

  /// About 600 bytes with what stands around it.
  static let text = String(repeating: "the quick brown fox jumps over the lazy dog; ", count: 9)

  /// The number behind `#n` in a payload.
  static func number(in bytes: UnsafeRawBufferPointer) -> Int? {
    guard let base = bytes.baseAddress else { return nil }
    var at = 0
    while true {
      guard at < bytes.count, let found = memchr(base + at, 0x23, bytes.count - at) else { return nil }
      at = UnsafeRawPointer(found) - base
      // Binary fields before the payload may hold the first of the two.
      if at + 1 < bytes.count, bytes[at + 1] == 0x6E { break }
      at += 1
    }
    var value = 0
    var place = at + 2
    while place < bytes.count, bytes[place] >= 0x30, bytes[place] <= 0x39 {
      value = value &* 10 &+ Int(bytes[place]) &- 0x30
      place += 1
    }
    return value
  }
}

/// A wire over a channel of its own, for protocols that are not ours.
class ChannelWire: PeerWire, ChannelDelegate {
  private(set) var channel: Channel?
  private var connector: ChannelConnector?
  /// Bytes of an item that has not come whole.
  private var rest: [UInt8] = []
  private var isOver = false

  override func connect() {
    connector = ChannelConnector.connect(
      host: "127.0.0.1", port: address.port, name: "localhost", context: address.context,
      timeout: .seconds(60), on: loop
    ) { [self] result in
      connector = nil
      switch result {
      case .failure(let end): over("\(end)")
      case .success(let channel):
        self.channel = channel
        channel.delegate = self
        begin()
      }
    }
  }

  /// The channel is open: the protocol's first words.
  func begin() {}

  /// Takes whole items from the front of `bytes`.
  ///
  /// - Returns: How many bytes they were.
  func take(_ bytes: UnsafeRawBufferPointer) -> Int { bytes.count }

  func received(_ plaintext: UnsafeRawBufferPointer) {
    guard !rest.isEmpty else {
      let used = take(plaintext)
      rest.append(contentsOf: plaintext[used...])
      return
    }
    rest.append(contentsOf: plaintext)
    let bytes = rest
    let used = bytes.withUnsafeBytes { take($0) }
    rest.removeFirst(min(used, rest.count))
  }

  func ended(_ reason: ChannelEnd) { over("\(reason)") }

  func over(_ why: String) {
    guard !isOver else { return }
    isOver = true
    failed(why)
  }

  func leave() {
    isOver = true
    channel?.close(flushing: .seconds(1))
    channel = nil
  }
}
