#pragma once
#include <dbus/dbus.h>
#include <sys/eventfd.h>
// Flags of an enum that Swift imports as another type than the call's.
static inline int shim_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
// Macros with casts, which Swift does not import.
enum { SHIM_STRING = 's', SHIM_UINT32 = 'u', SHIM_INT32 = 'i', SHIM_BOOL = 'b', SHIM_BYTE = 'y', SHIM_INT64 = 'x', SHIM_ARRAY = 'a', SHIM_VARIANT = 'v', SHIM_ENTRY = 'e' };
