#pragma once
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
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

// Options every context has: the server's choice of cipher counts, unless a peer without AES hardware asks for
// ChaCha20 first; no renegotiation, no compression.
static inline void shim_SSL_CTX_set_safe_options(SSL_CTX *c) {
  SSL_CTX_set_options(c, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}
// Writes may be partial and come from another address when repeated; an idle connection holds no record buffers.
static inline void shim_SSL_CTX_set_stream_modes(SSL_CTX *c) {
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
}
// HMAC-SHA256 under a key: parameters hold pointers to their names, which Swift's strings are not fit for.
static inline int shim_EVP_MAC_CTX_set_hmac_sha256(EVP_MAC_CTX *c, const void *key, size_t n) {
  OSSL_PARAM parameters[3];
  parameters[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, n);
  parameters[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0);
  parameters[2] = OSSL_PARAM_construct_end();
  return EVP_MAC_CTX_set_params(c, parameters);
}
