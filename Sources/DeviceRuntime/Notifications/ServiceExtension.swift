import Downloads
import Synchronization

/// May change a push before it is shown, for instance fetch its picture or decrypt its text.
///
/// Called for pushes that carry `mutable_content` and have something to read.
public protocol NotificationServiceExtension: Sendable {
  /// Makes the content that is shown.
  ///
  /// The task is cancelled when the time is up; then what `bestAttempt` was given is shown, or else the original. The
  /// same when it throws.
  func content(
    for request: NotificationRequest, bestAttempt: BestAttempt
  ) async throws -> NotificationContent
}

/// What is shown should the time run out.
public final class BestAttempt: Sendable {
  private let latest = Mutex<NotificationContent?>(nil)

  /// Content that is better than the original.
  public func offer(_ content: NotificationContent) { latest.withLock { $0 = content } }

  var content: NotificationContent? { latest.withLock { $0 } }
}

/// Attaches the picture that a push names in `fcm_options.image` or `notification.image`.
///
/// The type is told by the picture's bytes. Whatever goes wrong, the original is shown.
public struct ImageExtension: NotificationServiceExtension {
  /// Where pictures are put; they belong to the notification center then.
  public var folder: String
  /// Certificates that are believed, in place of the system's.
  public var caFile: String?
  /// For one picture.
  public var timeout: Duration

  /// - Parameters:
  ///   - folder: Is made when it is not there.
  ///   - caFile: PEM; nil for the system's certificates.
  ///   - timeout: Shorter than the center's limit, so that the original comes in time.
  public init(folder: String, caFile: String? = nil, timeout: Duration = .seconds(25)) {
    self.folder = folder
    self.caFile = caFile
    self.timeout = timeout
  }

  /// The content with its picture.
  public func content(
    for request: NotificationRequest, bestAttempt: BestAttempt
  ) async throws -> NotificationContent {
    var content = request.content
    guard let address = content.imageURL else { return content }
    try AttachmentFolder(folder).make()
    do throws(DownloadFault) {
      let file = try await Download.fetch(
        address, into: folder, name: AttachmentFolder.newName(),
        Download.Settings(timeout: timeout, caFile: caFile, kinds: [.image]))
      content.attachments.append(.init(path: file.path, mediaType: file.type.name))
      return content
    } catch {
      throw error.notificationError
    }
  }
}

extension DownloadFault {
  var notificationError: NotificationError {
    let code: NotificationError.Code =
      switch kind {
      case .type: .attachmentUnrecognizedType
      case .tooLarge: .attachmentInvalidFileSize
      case .truncated: .attachmentCorrupt
      case .file: .attachmentMoveFailed
      case .address, .network, .overdue, .cancelled: .attachmentInvalidURL
      }
    return NotificationError(code, description)
  }
}

/// Gives an extension its time and not more.
enum ExtensionRun {
  /// Returns within `limit`, also when the extension does not listen to its cancellation.
  static func content(
    for request: NotificationRequest, by service: any NotificationServiceExtension, limit: Duration
  ) async -> NotificationContent {
    let best = BestAttempt()
    let original = request.content
    let answer = FirstAnswer<NotificationContent>()
    let work = Task {
      let made = try? await service.content(for: request, bestAttempt: best)
      answer.give(made ?? best.content ?? original)
    }
    let timer = Task {
      guard (try? await Task.sleep(for: limit)) != nil else { return }
      work.cancel()
      answer.give(best.content ?? original)
    }
    let content = await answer.value()
    timer.cancel()
    return content
  }
}

/// Takes the first value that it is given.
private final class FirstAnswer<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, Never>)
    case given(Value)
    case done
  }
  private let state = Mutex(State.open)

  func give(_ value: Value) {
    let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
      switch state {
      case .open:
        state = .given(value)
        return nil
      case .waiting(let continuation):
        state = .done
        return continuation
      case .given, .done: return nil
      }
    }
    waiter?.resume(returning: value)
  }

  func value() async -> Value {
    await withCheckedContinuation { continuation in
      let ready: Value? = state.withLock { state in
        if case .given(let value) = state {
          state = .done
          return value
        }
        state = .waiting(continuation)
        return nil
      }
      if let ready { continuation.resume(returning: ready) }
    }
  }
}
