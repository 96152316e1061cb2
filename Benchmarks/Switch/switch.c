// The least that the task needs, for scale: a switch in C between senders and devices over TLS, on one thread, with epoll and
// OpenSSL, and a write-ahead log that a second thread brings to the disk.
//
//   reference-switch PORT CERTIFICATE KEY [LOG]
//
// It parses no XML and no JSON, knows no accounts, rules or limits, keeps nothing for those who are away, and starts empty.
// Lines over TLS: `S n` or `D n` says who connects, and is answered by `K`. A sender's `M number device text` becomes
// `M number.sender text` at the device, whose `A number.sender` becomes the sender's `A number`: at once without a log, and
// with one when the message is on the disk as well.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct {
  char *base;
  size_t count, room;
} Bytes;

static void add(Bytes *bytes, const void *more, size_t count) {
  if (bytes->count + count > bytes->room) {
    bytes->room = (bytes->count + count) * 2 + 4096;
    bytes->base = realloc(bytes->base, bytes->room);
    if (!bytes->base) abort();
  }
  memcpy(bytes->base + bytes->count, more, count);
  bytes->count += count;
}

static void drop(Bytes *bytes, size_t count) {
  memmove(bytes->base, bytes->base + count, bytes->count - count);
  bytes->count -= count;
}

typedef struct Peer {
  int descriptor, number, is_sender, is_dirty;
  SSL *tls;
  BIO *in, *out;       // what came from the wire, what goes there
  Bytes plain, answer; // a line that has not come whole; lines to be sent
  struct Peer *next_dirty;
} Peer;

enum { peers_max = 100000 };
static Peer *senders[peers_max], *devices[peers_max], *dirty;
static int poll_descriptor, wake_descriptor;
static SSL_CTX *context;

// The log: lines wait in `waiting` until the writer takes them all; an ack that must wait is kept with the number of
// bytes that must be on the disk before it.
static Bytes waiting;
static int log_descriptor = -1;
static unsigned long long logged, synced; // bytes handed to the log, and on the disk
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
typedef struct {
  unsigned long long until;
  int sender;
  char number[24];
} Ack;
static Ack *acks;
static size_t acks_first, acks_count, acks_room;

static void *write_log(void *unused) {
  (void)unused;
  Bytes taken = {0};
  for (;;) {
    pthread_mutex_lock(&lock);
    while (!waiting.count) pthread_cond_wait(&more, &lock);
    Bytes swap = waiting;
    waiting = taken;
    taken = swap;
    pthread_mutex_unlock(&lock);
    for (size_t done = 0; done < taken.count;) {
      ssize_t count = write(log_descriptor, taken.base + done, taken.count - done);
      if (count < 0) abort();
      done += (size_t)count;
    }
    if (fdatasync(log_descriptor)) abort();
    __atomic_add_fetch(&synced, taken.count, __ATOMIC_SEQ_CST);
    taken.count = 0;
    unsigned long long one = 1;
    if (write(wake_descriptor, &one, 8) != 8) abort();
  }
}

static void say(Peer *peer, const void *bytes, size_t count) {
  add(&peer->answer, bytes, count);
  if (peer->is_dirty) return;
  peer->is_dirty = 1;
  peer->next_dirty = dirty;
  dirty = peer;
}

static void forget(Peer *peer) {
  Peer **table = peer->is_sender ? senders : devices;
  if (peer->number >= 0 && table[peer->number] == peer) table[peer->number] = NULL;
  // In a list of those to be written to it is freed there.
  close(peer->descriptor);
  peer->descriptor = -1;
  if (peer->is_dirty) return;
  SSL_free(peer->tls);
  free(peer->plain.base);
  free(peer->answer.base);
  free(peer);
}

static void push_out(Peer *peer) {
  char *bytes;
  long count = BIO_get_mem_data(peer->out, &bytes);
  while (count > 0) {
    ssize_t done = write(peer->descriptor, bytes, (size_t)count);
    if (done < 0 && errno == EAGAIN) {
      // The peers of a benchmark read; so that this is rare, waiting is good enough.
      usleep(100);
      continue;
    }
    if (done < 0) break;
    bytes += done;
    count -= done;
  }
  (void)BIO_reset(peer->out);
}

static void flush_all(void) {
  while (dirty) {
    Peer *peer = dirty;
    dirty = peer->next_dirty;
    peer->is_dirty = 0;
    if (peer->descriptor < 0) {
      forget(peer);
      continue;
    }
    if (peer->answer.count) SSL_write(peer->tls, peer->answer.base, (int)peer->answer.count);
    peer->answer.count = 0;
    push_out(peer);
  }
}

static void ack(int sender, const char *number, size_t count) {
  if (sender < 0 || sender >= peers_max || !senders[sender]) return;
  char line[32] = "A ";
  memcpy(line + 2, number, count);
  line[2 + count] = '\n';
  say(senders[sender], line, count + 3);
}

static void tell_synced(void) {
  unsigned long long until = __atomic_load_n(&synced, __ATOMIC_SEQ_CST);
  while (acks_first < acks_count && acks[acks_first].until <= until) {
    Ack *next = &acks[acks_first++];
    ack(next->sender, next->number, strlen(next->number));
  }
  if (acks_first == acks_count) acks_first = acks_count = 0;
}

static void line(Peer *peer, char *text, size_t count) {
  if (count < 3) return;
  char *rest = text + 2;
  if (*text == 'S' || *text == 'D') {
    peer->is_sender = *text == 'S';
    peer->number = atoi(rest);
    if (peer->number < 0 || peer->number >= peers_max) return;
    (peer->is_sender ? senders : devices)[peer->number] = peer;
    say(peer, "K\n", 2);
  } else if (*text == 'M') {
    char *space = memchr(rest, ' ', count - 2);
    if (!space) return;
    int device = atoi(space + 1);
    char *payload = memchr(space + 1, ' ', count - (size_t)(space + 1 - text));
    if (!payload || device < 0 || device >= peers_max || !devices[device]) return;
    char head[64];
    int length = snprintf(head, sizeof head, "M %.*s.%d", (int)(space - rest), rest, peer->number);
    say(devices[device], head, (size_t)length);
    say(devices[device], payload, count - (size_t)(payload - text));
    say(devices[device], "\n", 1);
    if (log_descriptor < 0) return;
    pthread_mutex_lock(&lock);
    if (!waiting.count) pthread_cond_signal(&more);
    add(&waiting, text, count);
    add(&waiting, "\n", 1);
    pthread_mutex_unlock(&lock);
    logged += count + 1;
    if (acks_count == acks_room) {
      acks_room = acks_room * 2 + 1024;
      acks = realloc(acks, acks_room * sizeof *acks);
      if (!acks) abort();
    }
    Ack *next = &acks[acks_count++];
    next->until = logged;
    next->sender = peer->number;
    size_t digits = (size_t)(space - rest) < sizeof next->number ? (size_t)(space - rest) : sizeof next->number - 1;
    memcpy(next->number, rest, digits);
    next->number[digits] = 0;
  } else if (*text == 'A' && log_descriptor < 0) {
    char *dot = memchr(rest, '.', count - 2);
    if (dot && dot - rest < 24) ack(atoi(dot + 1), rest, (size_t)(dot - rest));
  }
}

static void heard(Peer *peer) {
  static char wire[65536];
  ssize_t count = read(peer->descriptor, wire, sizeof wire);
  if (count <= 0) {
    if (count < 0 && errno == EAGAIN) return;
    forget(peer);
    return;
  }
  BIO_write(peer->in, wire, (int)count);
  for (;;) {
    if (peer->plain.room - peer->plain.count < 16384) {
      peer->plain.room += 32768;
      peer->plain.base = realloc(peer->plain.base, peer->plain.room);
      if (!peer->plain.base) abort();
    }
    int got = SSL_read(peer->tls, peer->plain.base + peer->plain.count, (int)(peer->plain.room - peer->plain.count));
    if (got <= 0) {
      int why = SSL_get_error(peer->tls, got);
      ERR_clear_error();
      push_out(peer);
      if (why == SSL_ERROR_WANT_READ) break;
      forget(peer);
      return;
    }
    peer->plain.count += (size_t)got;
  }
  size_t start = 0;
  char *end;
  while ((end = memchr(peer->plain.base + start, '\n', peer->plain.count - start))) {
    size_t length = (size_t)(end - peer->plain.base) - start;
    *end = 0;
    line(peer, peer->plain.base + start, length);
    start += length + 1;
  }
  drop(&peer->plain, start);
  if (peer->plain.count == 0) {
    free(peer->plain.base);
    peer->plain = (Bytes){0};
  }
}

static void welcome(int listener) {
  for (;;) {
    int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) return;
    int one = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Peer *peer = calloc(1, sizeof *peer);
    if (!peer) abort();
    peer->descriptor = descriptor;
    peer->number = -1;
    peer->tls = SSL_new(context);
    peer->in = BIO_new(BIO_s_mem());
    peer->out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(peer->in, -1);
    SSL_set_bio(peer->tls, peer->in, peer->out);
    SSL_set_accept_state(peer->tls);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    epoll_ctl(poll_descriptor, EPOLL_CTL_ADD, descriptor, &event);
  }
}

int main(int count, char **words) {
  if (count < 4) {
    fprintf(stderr, "usage: reference-switch PORT CERTIFICATE KEY [LOG]\n");
    return 64;
  }
  signal(SIGPIPE, SIG_IGN);
  context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  if (SSL_CTX_use_certificate_chain_file(context, words[2]) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, words[3], SSL_FILETYPE_PEM) != 1) {
    ERR_print_errors_fp(stderr);
    return 1;
  }
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(words[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1000)) {
    perror("reference-switch");
    return 1;
  }
  poll_descriptor = epoll_create1(EPOLL_CLOEXEC);
  wake_descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(poll_descriptor, EPOLL_CTL_ADD, listener, &event);
  event.data.ptr = &wake_descriptor;
  epoll_ctl(poll_descriptor, EPOLL_CTL_ADD, wake_descriptor, &event);
  if (count > 4) {
    log_descriptor = open(words[4], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pthread_t writer;
    if (log_descriptor < 0 || pthread_create(&writer, NULL, write_log, NULL)) {
      perror("reference-switch");
      return 1;
    }
  }
  static struct epoll_event events[1024];
  for (;;) {
    int ready = epoll_wait(poll_descriptor, events, 1024, -1);
    for (int i = 0; i < ready; i++) {
      if (!events[i].data.ptr) {
        welcome(listener);
      } else if (events[i].data.ptr == &wake_descriptor) {
        unsigned long long many;
        if (read(wake_descriptor, &many, 8) == 8) tell_synced();
      } else {
        heard(events[i].data.ptr);
      }
    }
    flush_all();
  }
}
