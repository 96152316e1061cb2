#pragma once
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Function-like macros of OpenSSL, as functions that Swift can call.
static inline long shim_SSL_CTX_set_min_proto_version(SSL_CTX *c, int v) { return SSL_CTX_set_min_proto_version(c, v); }
static inline long shim_SSL_CTX_set_max_proto_version(SSL_CTX *c, int v) { return SSL_CTX_set_max_proto_version(c, v); }
static inline long shim_SSL_CTX_set_mode(SSL_CTX *c, long m) { return SSL_CTX_set_mode(c, m); }
static inline long shim_SSL_CTX_set_session_cache_mode(SSL_CTX *c, long m) { return SSL_CTX_set_session_cache_mode(c, m); }
static inline long shim_SSL_set_tlsext_host_name(SSL *s, const char *n) { return SSL_set_tlsext_host_name(s, n); }
static inline void shim_BIO_set_retry_read(BIO *b) { BIO_set_retry_read(b); }
static inline void shim_BIO_set_retry_write(BIO *b) { BIO_set_retry_write(b); }
static inline void shim_BIO_clear_retry_flags(BIO *b) { BIO_clear_retry_flags(b); }
static inline long shim_SSL_CTX_ticket_keys_length(SSL_CTX *c) { return SSL_CTX_get_tlsext_ticket_keys(c, NULL, 0); }
static inline long shim_SSL_CTX_get_ticket_keys(SSL_CTX *c, void *keys, long n) { return SSL_CTX_get_tlsext_ticket_keys(c, keys, n); }
static inline long shim_SSL_CTX_set_ticket_keys(SSL_CTX *c, void *keys, long n) { return SSL_CTX_set_tlsext_ticket_keys(c, keys, n); }

// Options every context has: the server's choice of cipher counts, unless a peer without AES hardware asks for
// ChaCha20 first; no renegotiation, no compression.
static inline void shim_SSL_CTX_set_safe_options(SSL_CTX *c) {
  SSL_CTX_set_options(c, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}
// Writes may be partial and come from another address when repeated; an idle connection holds no record buffers.
static inline void shim_SSL_CTX_set_stream_modes(SSL_CTX *c) {
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
}
