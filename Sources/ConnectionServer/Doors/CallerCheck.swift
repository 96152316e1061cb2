import HTTPCore
import PushHTTP
import PushModel
import Seams
import Stores

/// Who calls the legacy, instance id and group endpoints.
enum CallerCheck {
  /// The project that a key or a bearer token speaks for; nil when it speaks for none.
  ///
  /// - Parameter grant: Decides about a bearer token.
  static func project(
    _ fields: HTTPFields, _ context: ServerContext, grant: (String) -> Result<BearerGrant, V1Fault>
  ) -> Project? {
    switch HTTPCredential(fields) {
    case .key(let text):
      return context.accounts.key(text.trimmed, .server)?.sender.flatMap { context.accounts.project($0) }
    case .bearer(let token):
      guard HTTPCredential.allowsBearer(fields), case .success(let grant) = grant(token), grant.maySend
      else { return nil }
      if let sender = grant.sender { return context.accounts.project(sender) }
      // A token for every project: the header of group calls tells which one is meant.
      if let named = fields["project_id"] { return context.accounts.project(named: named) }
      return context.accounts.projects.first
    case .missing, .other: return nil
    }
  }

  /// The same for calls that are no sends.
  static func project(_ fields: HTTPFields, _ context: ServerContext) -> Project? {
    let check = BearerCheck(context: context)
    return project(fields, context) { check.check($0, now: context.time.wall) }
  }
}
