#pragma once
#include <curl/curl.h>

// Variadic functions of curl, as functions that Swift can call. The parentheses keep out its macros of the same name.
typedef size_t (*shim_curl_bytes)(char *, size_t, size_t, void *);

static inline CURLcode shim_curl_set_long(CURL *h, CURLoption o, long v) { return (curl_easy_setopt)(h, o, v); }
static inline CURLcode shim_curl_set_text(CURL *h, CURLoption o, const char *v) { return (curl_easy_setopt)(h, o, v); }
static inline CURLcode shim_curl_set_pointer(CURL *h, CURLoption o, const void *v) { return (curl_easy_setopt)(h, o, v); }
static inline CURLcode shim_curl_set_list(CURL *h, CURLoption o, struct curl_slist *v) { return (curl_easy_setopt)(h, o, v); }
static inline CURLcode shim_curl_set_sink(CURL *h, CURLoption o, shim_curl_bytes f, void *p, CURLoption d) {
  CURLcode code = (curl_easy_setopt)(h, o, f);
  return code == CURLE_OK ? (curl_easy_setopt)(h, d, p) : code;
}
static inline CURLMcode shim_curl_multi_set_long(CURLM *m, CURLMoption o, long v) { return (curl_multi_setopt)(m, o, v); }
static inline long shim_curl_status(CURL *h) { long v = 0; (curl_easy_getinfo)(h, CURLINFO_RESPONSE_CODE, &v); return v; }
static inline long shim_curl_version_used(CURL *h) { long v = 0; (curl_easy_getinfo)(h, CURLINFO_HTTP_VERSION, &v); return v; }
// Whether a transfer is over, and how; the message's union has no name in Swift.
static inline CURLcode shim_curl_result(const CURLMsg *m) { return m->data.result; }
static inline CURLcode shim_curl_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
