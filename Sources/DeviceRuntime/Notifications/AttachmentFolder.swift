import Glibc

/// Where the files of notifications lie; they belong to the center once they are in here.
struct AttachmentFolder: Sendable {
  let path: String

  init(_ path: String) { self.path = path }

  static func newName() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }

  func make() throws(NotificationError) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw NotificationError(.attachmentMoveFailed, "\(path): \(String(cString: strerror(errno)))")
    }
  }

  /// Checks files of a local request by their bytes and moves them in here.
  func take(
    _ attachments: [NotificationContent.Attachment]
  ) throws(NotificationError) -> [NotificationContent.Attachment] {
    guard !attachments.isEmpty else { return [] }
    var checked: [(NotificationContent.Attachment, MediaType)] = []
    for attachment in attachments { checked.append((attachment, try type(of: attachment))) }
    try make()
    var taken: [NotificationContent.Attachment] = []
    for (attachment, type) in checked {
      var attachment = attachment
      attachment.mediaType = type.name
      if !attachment.path.hasPrefix(path + "/") {
        let place = "\(path)/\(Self.newName()).\(type.fileExtension)"
        guard rename(attachment.path, place) == 0 || copy(attachment.path, to: place) else {
          throw NotificationError(
            .attachmentMoveFailed, "\(attachment.path): \(String(cString: strerror(errno)))")
        }
        attachment.path = place
      }
      taken.append(attachment)
    }
    return taken
  }

  private func type(of attachment: NotificationContent.Attachment) throws(NotificationError) -> MediaType {
    let file = open(attachment.path, O_RDONLY | O_CLOEXEC)
    var status = stat()
    guard file >= 0, fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      if file >= 0 { close(file) }
      throw NotificationError(.attachmentInvalidURL, "\(attachment.path) is no file that can be read")
    }
    defer { close(file) }
    var head = [UInt8](repeating: 0, count: MediaType.headMax)
    let count = read(file, &head, head.count)
    guard let type = MediaType(head.prefix(max(0, count))) else {
      throw NotificationError(.attachmentUnrecognizedType, "\(attachment.path) is of no type that is shown")
    }
    guard Int(status.st_size) <= type.kind.bytesMax else {
      throw NotificationError(
        .attachmentInvalidFileSize, "\(attachment.path) is larger than \(type.kind.bytesMax)")
    }
    return type
  }

  /// For another file system, where renaming does not work.
  private func copy(_ from: String, to place: String) -> Bool {
    let source = open(from, O_RDONLY | O_CLOEXEC)
    guard source >= 0 else { return false }
    defer { close(source) }
    let target = open(place, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o600)
    guard target >= 0 else { return false }
    defer { close(target) }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(source, &buffer, buffer.count)
      if count == 0 { break }
      guard count > 0, write(target, buffer, count) == count else {
        unlink(place)
        return false
      }
    }
    unlink(from)
    return true
  }

  /// Removes the files of a notification that is gone, those in here.
  func drop(_ attachments: [NotificationContent.Attachment]) {
    for attachment in attachments where attachment.path.hasPrefix(path + "/") { unlink(attachment.path) }
  }

  /// Removes what no notification names: left by a process that was killed.
  func sweep(keeping paths: Set<String>) {
    guard let handle = opendir(path) else { return }
    defer { closedir(handle) }
    while let entry = readdir(handle) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      let file = path + "/" + name
      if name != ".", name != "..", !paths.contains(file) { unlink(file) }
    }
  }
}
