#pragma once

/// Registers the SQLite file system "fault": the default one, whose writes and syncs can be made to fail.
int fault_vfs_register(void);

/// Kinds of calls that fail from now on: a sum of the values below; 0 for none.
void fault_vfs_fail(int kinds);

/// Lets that many calls of these kinds pass first.
void fault_vfs_pass(int calls);

enum {
  FAULT_WRITE_LOG = 1,  ///< Writes to the write-ahead log: disk full.
  FAULT_SYNC_LOG = 2,   ///< Syncs of the write-ahead log: I/O error.
  FAULT_READ = 4,       ///< Reads of any file: I/O error.
};
