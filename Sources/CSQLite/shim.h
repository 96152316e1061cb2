#pragma once
#include <sqlite3.h>
// SQLITE_TRANSIENT and SQLITE_STATIC are casts, which Swift does not import.
static inline int shim_bind_blob_static(sqlite3_stmt *s, int i, const void *p, int n) { return sqlite3_bind_blob(s, i, p, n, SQLITE_STATIC); }
static inline int shim_bind_blob_transient(sqlite3_stmt *s, int i, const void *p, int n) { return sqlite3_bind_blob(s, i, p, n, SQLITE_TRANSIENT); }
static inline int shim_bind_text_transient(sqlite3_stmt *s, int i, const char *p, int n) { return sqlite3_bind_text(s, i, p, n, SQLITE_TRANSIENT); }
static inline int shim_bind_text_static(sqlite3_stmt *s, int i, const char *p, int n) { return sqlite3_bind_text(s, i, p, n, SQLITE_STATIC); }
