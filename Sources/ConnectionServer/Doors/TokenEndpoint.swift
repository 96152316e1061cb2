import HTTPCore
import PushHTTP

/// `POST /token`, and Google's other paths of it.
struct TokenEndpoint: Sendable {
  let context: ServerContext

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    do throws(OAuthFault) {
      let text = try AssertionCheck(context: context).accessToken(for: FormText.pairs(request.body))
      // One second less than it holds, for the way.
      return OAuthAnswer.token(text, expiresIn: AccessToken.lifetime - 1)
    } catch {
      return error.response
    }
  }
}
