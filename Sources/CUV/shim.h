#pragma once
#include <uv.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

// Not declared without _GNU_SOURCE, which a module cannot rely on.
int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int pthread_setname_np(pthread_t thread, const char *name);

// One call for both families: 0, or a negative errno.
static inline int shim_accept(int fd, struct sockaddr_storage *address) {
  socklen_t length = sizeof *address;
  int accepted;
  do accepted = accept4(fd, (struct sockaddr *)address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  while (accepted < 0 && errno == EINTR);
  return accepted < 0 ? -errno : accepted;
}
