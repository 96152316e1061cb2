#pragma once
#include <zlib.h>

// A macro of zlib, as a function that Swift can call.
static inline int shim_inflateInit2(z_stream *s, int bits) { return inflateInit2(s, bits); }
static inline int shim_deflateInit2(z_stream *s, int level, int bits) { return deflateInit2(s, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY); }
