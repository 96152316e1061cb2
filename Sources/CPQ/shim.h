#pragma once
#include <libpq-fe.h>
// PG_DIAG_* are characters, which Swift imports as Int32 only when they are plain numbers.
static inline int shim_diag_sqlstate(void) { return PG_DIAG_SQLSTATE; }
static inline int shim_diag_severity(void) { return PG_DIAG_SEVERITY_NONLOCALIZED; }
static inline int shim_diag_primary(void) { return PG_DIAG_MESSAGE_PRIMARY; }
