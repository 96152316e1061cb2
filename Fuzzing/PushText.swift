// modules: Bytes Seams JSONCore PushModel
import Bytes
import JSONCore
import PushModel
import Seams

/// JSON texts of app servers and devices into the readers.
///
/// Holds that the scanner and the tree accept the same texts, that a tree written is the tree read, and that a
/// message written for a device is a valid object.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPushText(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let text = UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
  var document = JSONDocument(depthMax: 16)
  let isValid = (try? document.read(text)) != nil
  let tree = try? JSONValue(parsing: text, depthMax: 16)
  guard isValid == (tree != nil) else { fatalError("scanner and tree disagree") }
  if let tree, (try? JSONValue(parsing: tree.bytes, depthMax: 16)) != tree {
    fatalError("a tree written is another one when read")
  }
  var device = DeviceUpstreamReader(limits: Limits())
  _ = device.read(text)
  var reader = DownstreamReader(limits: Limits())
  guard case .downstream(let draft) = reader.read(text) else { return 0 }
  guard isValid else { fatalError("a message was read from what is no JSON") }
  var writer = ByteWriter()
  DeviceMessageWriter.append(
    draft, of: text, messageID: Hash128(high: 1, low: 2), origin: .sender(SenderID(1)), category: "app",
    token: "token", sentTime: WallTime(ms: 1), to: &writer)
  guard (try? JSONValue(parsing: writer.bytes, depthMax: 32))?.members != nil else {
    fatalError("the device's message is no JSON object")
  }
  return 0
}
