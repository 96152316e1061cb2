// modules: Bytes Seams XMLCore XMPPCore
import Bytes
import XMPPCore

/// What a login carries: base 64 and SASL PLAIN's message.
///
/// Holds that what was decoded encodes to the text it came from, that an independent decoder takes the same texts,
/// and that credentials which are read are those that were written and never show their password.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSASL(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: start == nil ? 0 : count))
  let text = String(decoding: input, as: UTF8.self)
  let decoded = Base64.decode(text)
  guard decoded == slowly(Array(text.utf8)) else { fatalError("decodes another way") }
  if let decoded {
    guard Base64.encode(decoded) == text else { fatalError("encodes to another text") }
    read(decoded)
  }
  guard Base64.decode(Base64.encode(input)) == input else { fatalError("bytes encoded are other bytes") }
  read(input)
  return 0
}

/// Bit by bit, from RFC 4648's table.
private func slowly(_ text: [UInt8]) -> [UInt8]? {
  let table = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  guard text.count % 4 == 0 else { return nil }
  var digits = text
  while digits.last == UInt8(ascii: "="), text.count - digits.count < 2 { digits.removeLast() }
  var bits: [Bool] = []
  for digit in digits {
    guard let value = table.firstIndex(of: digit) else { return nil }
    bits += (0..<6).reversed().map { value >> $0 & 1 == 1 }
  }
  let whole = bits.count / 8 * 8
  guard !bits[whole...].contains(true) else { return nil }
  return stride(from: 0, to: whole, by: 8).map { from in
    bits[from..<from + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
  }
}

private func read(_ message: [UInt8]) {
  let parts = message.split(separator: 0, omittingEmptySubsequences: false)
  guard let credentials = try? PlainCredentials(message: message) else { return }
  guard parts.count == 3, credentials.authzid.utf8.elementsEqual(parts[0]),
    credentials.authcid.utf8.elementsEqual(parts[1]), credentials.password.utf8.elementsEqual(parts[2])
  else { fatalError("read other parts") }
  guard !credentials.identity.isEmpty, !credentials.identity.contains("@") else {
    fatalError("no identity to look for")
  }
  guard let again = Base64.decode(credentials.encoded), (try? PlainCredentials(message: again)) == credentials
  else {
    fatalError("credentials written are other ones when read")
  }
  guard "\(credentials)" == "PlainCredentials(\(credentials.identity))",
    "\(credentials)" == String(reflecting: credentials)
  else { fatalError("shows more than the identity") }
}
