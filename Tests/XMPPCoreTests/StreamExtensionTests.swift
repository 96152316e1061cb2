import Seams
import Testing
import XMPPCore

/// What the two ends of this product agree on beside RFC 6120.
@Suite struct StreamExtensionTests {
  private func settled(wished: Int?, offered: Int?, step: Int = 1_000) -> Pair {
    let pair = Pair(step: step, window: wished)
    pair.server.windowMax = offered
    pair.settle()
    return pair
  }

  @Test(arguments: [1, 7, 1_000])
  func aWindowIsAskedForAndGrantedWhileBinding(step: Int) {
    let pair = settled(wished: 500, offered: 1_000, step: step)
    #expect(pair.client.events == [.ready(address)])
    #expect(pair.client.stream.grantedWindow == 500)
    #expect(pair.server.stream.window == 500)
  }

  @Test func nobodyGetsMoreThanIsOffered() {
    let pair = settled(wished: 5_000, offered: 1_000)
    #expect(pair.client.stream.grantedWindow == 1_000)
    #expect(pair.server.stream.window == 1_000)
  }

  @Test(arguments: [(nil, 1_000), (500, nil), (nil, nil)] as [(Int?, Int?)])
  func withoutOfferOrWishThereIsNone(wished: Int?, offered: Int?) {
    let pair = settled(wished: wished, offered: offered)
    #expect(pair.client.events == [.ready(address)])
    #expect(pair.client.stream.grantedWindow == nil)
    #expect(pair.server.stream.window == nil)
  }

  @Test func aClientAsksForNothingThatWasNotOffered() {
    let client = Client(window: 500)
    _ = client.open()
    _ = client.feed(
      "<stream:stream from='x' id='1' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        + "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms></stream:features>"
    )
    _ = client.feed("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
    let asked = client.feed(
      "<stream:stream from='x' id='1' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>")
    #expect(asked.contains("<resource>worker</resource>"))
    #expect(!asked.contains("window"))
  }

  @Test(arguments: ["0", "-5", "abc", "1e3", "", "99999999999999999999", "100001"])
  func aWishThatIsNoNumberInRangeIsIgnored(size: String) {
    let server = Server()
    server.windowMax = 1_000
    server.feed(openTag)
    server.feed(authWithWindow)
    #expect(server.feed(openTag).contains("<window xmlns=\"urn:weir:window:0\" max=\"1000\"/>"))
    let answer = server.feed(
      "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
        + "<window xmlns='urn:weir:window:0' size='\(size)'/></bind></iq>")
    #expect(answer.contains("<jid>") && !answer.contains("window"))
    #expect(server.stream.window == nil)
  }

  private var authWithWindow: String {
    auth("", "123456789").replacing(
      "<auth ", with: "<auth xmlns:weir=\"urn:weir:window:0\" weir:window=\"true\" ")
  }

  /// Who speaks the protocol as documented is answered byte for byte as documented.
  @Test(arguments: ["", "weir:window='false' xmlns:weir='urn:weir:window:0' ", "window='true' "])
  func aClientThatDoesNotSayThatItKnowsWindowsIsOfferedNone(attributes: String) {
    let server = Server()
    server.windowMax = 1_000
    server.feed(openTag)
    server.feed(auth("", "123456789").replacing("<auth ", with: "<auth " + attributes))
    #expect(!server.feed(openTag).contains("window"))
    let answer = server.feed(
      "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
        + "<window xmlns='urn:weir:window:0' size='500'/></bind></iq>")
    #expect(answer.contains("<jid>") && !answer.contains("window"))
    #expect(server.stream.window == nil)
  }

  @Test func aServerThatShutsDownSaysHowLongToStayAway() {
    let pair = settled(wished: nil, offered: nil)
    pair.server.stream.fail(.systemShutdown, text: "draining", output: &pair.server.output)
    pair.settle()
    #expect(pair.client.stream.retryAfter == .seconds(2))
    let other = settled(wished: nil, offered: nil)
    other.server.stream.fail(.conflict, output: &other.server.output)
    other.settle()
    #expect(other.client.stream.retryAfter == nil)
  }

  @Test(arguments: [("5", 5), ("0", 0), ("-1", nil), ("3601", nil), ("soon", nil)] as [(String, Int?)])
  func aPauseIsReadWhenItIsANumberOfSecondsUpToAnHour(text: String, seconds: Int?) {
    let pair = settled(wished: nil, offered: nil)
    pair.client.feed(
      "<stream:error><system-shutdown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
        + "<retry-after xmlns='urn:weir:retry:0' seconds='\(text)'/></stream:error>")
    #expect(pair.client.stream.retryAfter == seconds.map { .seconds($0) })
  }
}
