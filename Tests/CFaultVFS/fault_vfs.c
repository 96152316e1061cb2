#include "fault_vfs.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int failing;
static atomic_int passing;

void fault_vfs_fail(int kinds) { atomic_store(&failing, kinds); }
void fault_vfs_pass(int calls) { atomic_store(&passing, calls); }

static int fails(int kind) {
  if (!(atomic_load(&failing) & kind)) return 0;
  return atomic_fetch_sub(&passing, 1) <= 0;
}

typedef struct {
  sqlite3_file base;
  int is_log;
  sqlite3_file *real;
} fault_file;

static sqlite3_file *real(sqlite3_file *file) { return ((fault_file *)file)->real; }

static int f_close(sqlite3_file *f) { return real(f)->pMethods->xClose(real(f)); }
static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) {
  if (fails(FAULT_READ)) return SQLITE_IOERR_READ;
  return real(f)->pMethods->xRead(real(f), p, n, at);
}
static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at) {
  if (((fault_file *)f)->is_log && fails(FAULT_WRITE_LOG)) return SQLITE_FULL;
  return real(f)->pMethods->xWrite(real(f), p, n, at);
}
static int f_truncate(sqlite3_file *f, sqlite3_int64 n) { return real(f)->pMethods->xTruncate(real(f), n); }
static int f_sync(sqlite3_file *f, int flags) {
  if (((fault_file *)f)->is_log && fails(FAULT_SYNC_LOG)) return SQLITE_IOERR_FSYNC;
  return real(f)->pMethods->xSync(real(f), flags);
}
static int f_size(sqlite3_file *f, sqlite3_int64 *n) { return real(f)->pMethods->xFileSize(real(f), n); }
static int f_lock(sqlite3_file *f, int l) { return real(f)->pMethods->xLock(real(f), l); }
static int f_unlock(sqlite3_file *f, int l) { return real(f)->pMethods->xUnlock(real(f), l); }
static int f_reserved(sqlite3_file *f, int *r) { return real(f)->pMethods->xCheckReservedLock(real(f), r); }
static int f_control(sqlite3_file *f, int op, void *p) { return real(f)->pMethods->xFileControl(real(f), op, p); }
static int f_sector(sqlite3_file *f) { return real(f)->pMethods->xSectorSize(real(f)); }
static int f_traits(sqlite3_file *f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); }
static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **p) {
  return real(f)->pMethods->xShmMap(real(f), page, size, extend, p);
}
static int f_shm_lock(sqlite3_file *f, int o, int n, int flags) {
  return real(f)->pMethods->xShmLock(real(f), o, n, flags);
}
static void f_shm_barrier(sqlite3_file *f) { real(f)->pMethods->xShmBarrier(real(f)); }
static int f_shm_unmap(sqlite3_file *f, int d) { return real(f)->pMethods->xShmUnmap(real(f), d); }

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_reserved,
    .xFileControl = f_control,
    .xSectorSize = f_sector,
    .xDeviceCharacteristics = f_traits,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

static sqlite3_vfs *host;
static sqlite3_vfs fault;

static int v_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
  (void)vfs;
  fault_file *f = (fault_file *)file;
  f->base.pMethods = 0;
  f->is_log = (flags & SQLITE_OPEN_WAL) != 0;
  f->real = (sqlite3_file *)(f + 1);
  int code = host->xOpen(host, name, f->real, flags, out);
  // Set even on failure when the host did so, since SQLite then calls xClose.
  if (f->real->pMethods) f->base.pMethods = &methods;
  return code;
}

int fault_vfs_register(void) {
  if (host) return SQLITE_OK;
  host = sqlite3_vfs_find(0);
  if (!host) return SQLITE_ERROR;
  fault = *host;
  fault.pNext = 0;
  fault.zName = "fault";
  fault.szOsFile = (int)sizeof(fault_file) + host->szOsFile;
  fault.xOpen = v_open;
  return sqlite3_vfs_register(&fault, 0);
}
