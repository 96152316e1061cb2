package import EventLoops
package import TLSCore

extension Channel {
  /// A server's side of an accepted connection: TLS with a context, else plain.
  ///
  /// - Throws: ``ChannelEnd`` when the descriptor or the context is of no use; the connection is closed then.
  package convenience init(
    accepting socket: AcceptedSocket, context: TLSContext?, on loop: any Loop
  ) throws(ChannelEnd) {
    let stream: any ByteStream
    do throws(NetworkFault) {
      stream = try DetachedSocket(descriptor: socket.descriptor).attach(to: loop, peer: socket.peer)
    } catch {
      throw .network(error)
    }
    do throws(TLSFault) {
      var session: TLSSession?
      if let context { session = try TLSSession(server: context) }
      self.init(stream, tls: session)
    } catch {
      stream.close()
      throw .tls(error)
    }
  }
}
