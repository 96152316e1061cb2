/// What a file is, told by its first bytes: names and headers are the sender's word, bytes are not.
package struct MediaType: Sendable, Hashable {
  package enum Kind: Sendable, Hashable {
    case image, audio, movie

    /// The largest file that is attached.
    package var bytesMax: Int {
      switch self {
      case .image: 10_000_000
      case .audio: 5_000_000
      case .movie: 50_000_000
      }
    }
  }

  package var kind: Kind
  /// `image/png`.
  package var name: String
  /// Without a dot.
  package var fileExtension: String

  /// Bytes that ``init(_:)`` looks at.
  package static let headMax = 16

  /// - Parameter bytes: The beginning of the file, ``headMax`` of it if it has so many.
  package init?(_ bytes: some Sequence<UInt8>) {
    let head = Array(bytes.prefix(Self.headMax))
    func sees(_ text: String, at place: Int = 0) -> Bool {
      let wanted = Array(text.utf8)
      return head.count >= place + wanted.count && Array(head[place..<(place + wanted.count)]) == wanted
    }
    func starts(_ wanted: [UInt8]) -> Bool { head.starts(with: wanted) }
    switch true {
    case starts([0xFF, 0xD8, 0xFF]): self.init(.image, "image/jpeg", "jpg")
    case starts([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]): self.init(.image, "image/png", "png")
    case sees("GIF87a"), sees("GIF89a"): self.init(.image, "image/gif", "gif")
    case sees("RIFF") && sees("WAVE", at: 8): self.init(.audio, "audio/wav", "wav")
    case sees("FORM") && (sees("AIFF", at: 8) || sees("AIFC", at: 8)): self.init(.audio, "audio/aiff", "aiff")
    case sees("ID3"): self.init(.audio, "audio/mpeg", "mp3")
    case sees("ftypM4A", at: 4): self.init(.audio, "audio/mp4", "m4a")
    case sees("ftyp", at: 4): self.init(.movie, "video/mp4", "mp4")
    case sees("RIFF") && sees("AVI ", at: 8): self.init(.movie, "video/x-msvideo", "avi")
    case starts([0, 0, 1, 0xBA]), starts([0, 0, 1, 0xB3]): self.init(.movie, "video/mpeg", "mpg")
    // A frame of MPEG audio: eleven bits of ones, layer III.
    case head.count >= 2 && head[0] == 0xFF && head[1] & 0xE6 == 0xE2: self.init(.audio, "audio/mpeg", "mp3")
    default: return nil
    }
  }

  private init(_ kind: Kind, _ name: String, _ fileExtension: String) {
    self.kind = kind
    self.name = name
    self.fileExtension = fileExtension
  }

  /// Whether a picture has the end its format wants; true for what has no such mark.
  package func isWhole(_ bytes: some BidirectionalCollection<UInt8>) -> Bool {
    // Some writers put padding behind the end.
    let tail = Array(bytes.suffix(64))
    switch name {
    case "image/jpeg": return Self.holds(tail, [0xFF, 0xD9])
    case "image/png": return Self.holds(tail, Array("IEND".utf8))
    case "image/gif": return tail.contains(0x3B)
    default: return true
    }
  }

  private static func holds(_ bytes: [UInt8], _ mark: [UInt8]) -> Bool {
    bytes.count >= mark.count
      && (0...(bytes.count - mark.count)).contains { Array(bytes[$0..<($0 + mark.count)]) == mark }
  }
}
