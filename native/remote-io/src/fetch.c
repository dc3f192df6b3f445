#include "fetch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire.h"

// How many pieces are on their way at once.
#define AT_ONCE 4
// If a file changes while it is read, it is read again, but not for ever.
#define TRIES 5

struct fetching {
  const char *path;
  int fd;
  off_t size;
  struct stat status;    // of the first piece
  atomic_llong next;     // the offset of the next piece
  atomic_int error;      // an errno below 0
  atomic_bool changed;   // pieces are of different contents
};

static bool same(const struct stat *a, const struct stat *b) {
  return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
         a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int store(int fd, const uint8_t *bytes, size_t length, off_t at) {
  while (length > 0) {
    ssize_t put = pwrite(fd, bytes, length, at);
    if (put < 0) return -errno;
    bytes += put;
    length -= put;
    at += put;
  }
  return 0;
}

static int fetch_piece(struct fetching *all, off_t at, size_t length, struct stat *status) {
  struct answer answer = ask(&(struct request){.call = HOME_READ, .words = {all->path}, .numbers = {at, length}});
  int error = answer.result < 0 ? (int)answer.result : 0;
  if (!error && (!read_status(answer.bytes, answer.length, status) || answer.length - STATUS_BYTES > length)) error = -EIO;
  if (!error) error = store(all->fd, answer.bytes + STATUS_BYTES, answer.length - STATUS_BYTES, at);
  free(answer.bytes);
  return error;
}

static void *fetch_pieces(void *given) {
  struct fetching *all = given;
  for (;;) {
    off_t at = atomic_fetch_add(&all->next, PIECE);
    if (at >= all->size || all->error || all->changed) return NULL;
    struct stat status;
    int error = fetch_piece(all, at, all->size - at < PIECE ? all->size - at : PIECE, &status);
    if (error) all->error = error;
    else if (!same(&status, &all->status)) all->changed = true;
  }
}

static void fetch_rest(struct fetching *all) {
  pthread_t others[AT_ONCE - 1];
  int started = 0;
  off_t missing = all->size - all->next;
  while (started < AT_ONCE - 1 && missing > (started + 1) * (off_t)PIECE)
    if (pthread_create(&others[started], NULL, fetch_pieces, all) == 0) started++;
    else break;
  fetch_pieces(all);
  for (int i = 0; i < started; i++) pthread_join(others[i], NULL);
}

static int fetch(struct object *object, int fd, off_t known_size, struct stat *status, bool part) {
  for (int turn = 1;; turn++) {
    struct fetching all = {.path = object->path, .fd = fd};
    size_t first = known_size < PIECE && part ? (size_t)known_size : PIECE;
    int error = fetch_piece(&all, 0, first, &all.status);
    if (error) return error;
    all.size = part ? known_size : all.status.st_size;
    all.next = PIECE;
    fetch_rest(&all);
    *status = all.status;
    if (all.error) return all.error;
    if (!all.changed || turn == TRIES) return part || ftruncate(fd, all.size) == 0 ? 0 : -errno;
    known_size = all.size;
  }
}

int fetch_whole(struct object *object, int fd, const struct stat *status) {
  struct stat found;
  int error = fetch(object, fd, status->st_size, &found, false);
  if (!error) object->status = found;
  return error;
}

int fetch_part(struct object *object, int fd, off_t size) {
  struct stat found;
  return size == 0 ? 0 : fetch(object, fd, size, &found, true);
}
