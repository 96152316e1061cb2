#pragma once
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Declared by <pthread.h> and others for _GNU_SOURCE alone.
int pthread_setname_np(pthread_t thread, const char *name);
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path);
int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until);
int pipe2(int descriptors[2], int flags);
void *memmem(const void *haystack, size_t haystack_count, const void *needle, size_t needle_count);

// Swift 6 does not let stdout be named, since it is a mutable global.
static inline void shim_line_buffer_stdout(void) { setvbuf(stdout, NULL, _IOLBF, 0); }
static inline void shim_flush_stdout(void) { fflush(stdout); }
// Readable when the process has ended. Variadic in C, as the next one.
static inline int shim_process_descriptor(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }
static inline int shim_open_lock_file(const char *path) { return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); }
