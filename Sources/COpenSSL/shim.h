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
