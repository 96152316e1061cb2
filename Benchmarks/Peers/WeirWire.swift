import Bytes
import EventLoops
import LoadGenerator

/// Weir's stream protocol.
final class WeirWire: PeerWire {
  /// What all streams of the loop read and write with.
  private let scratch: LeanStream.Scratch
  private var stream: LeanStream?
  private var output = ByteWriter(capacity: 2_048)

  init(_ role: Role, _ address: PeerAddress, scratch: LeanStream.Scratch, on loop: EventLoop) {
    self.scratch = scratch
    super.init(role, address, on: loop)
  }

  override func connect() {
    let server = LeanServer(
      host: "127.0.0.1", port: address.port, name: "localhost", context: address.context)
    let (identity, password) =
      switch role {
      case .sender: (address.senderID, address.serverKey)
      case .device(let number): (address.devices[number].id, address.devices[number].secret)
      }
    let stream = LeanStream(
      identity: identity, password: password, server: server, scratch: scratch, on: loop)
    self.stream = stream
    stream.ready = { [unowned self] _ in ready() }
    stream.failed = { [unowned self] in failed($0) }
    stream.received = { [unowned self] in received($0, $1) }
    stream.connect()
  }

  private func received(_ stream: LeanStream, _ json: UnsafeRawBufferPointer) {
    guard let id = Lean.messageID(json) else { return }
    if case .sender = role {
      if Lean.isAck(json), let number = Lean.number(id.dropFirst(2)) {
        acked(number)
      } else {
        failed("nacked: \(String(decoding: json, as: UTF8.self))")
      }
      return
    }
    output.removeAll()
    output.append("<message><gcm xmlns=\"google:mobile:data\">{\"message_type\":\"ack\",\"message_id\":\"")
    output.append(id)
    output.append("\"}</gcm></message>")
    output.bytes.withUnsafeBytes { stream.send($0) }
    if let number = Self.number(in: json) { delivered(number) }
  }

  override func publish(_ number: Int, to device: Int) {
    output.removeAll()
    output.append("<message><gcm xmlns=\"google:mobile:data\">{\"message_id\":\"m-")
    output.append(decimal: Int64(number))
    output.append("\",\"to\":\"")
    output.append(address.devices[device].token)
    output.append("\",\"data\":{\"text\":\"#n")
    output.append(decimal: Int64(number))
    output.append(" ")
    output.append(Self.text)
    output.append("\"}}</gcm></message>")
    output.bytes.withUnsafeBytes { stream?.send($0) }
  }

  override func close() {
    stream?.close()
    stream = nil
  }
}
