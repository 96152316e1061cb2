#pragma once
#include <curl/curl.h>
// curl_easy_setopt and curl_easy_getinfo are variadic macros, which Swift does not import.
static inline CURLcode shim_curl_set_long(CURL *c, CURLoption o, long v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode shim_curl_set_string(CURL *c, CURLoption o, const char *v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode shim_curl_set_pointer(CURL *c, CURLoption o, void *v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode shim_curl_set_write(CURL *c, curl_write_callback f) { return curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, f); }
static inline CURLcode shim_curl_set_progress(CURL *c, curl_xferinfo_callback f) { return curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, f); }
static inline CURLcode shim_curl_get_long(CURL *c, CURLINFO i, long *v) { return curl_easy_getinfo(c, i, v); }
static inline CURLcode shim_curl_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
