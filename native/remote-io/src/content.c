#include "content.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "attributes.h"
#include "fetch.h"
#include "parts.h"
#include "say.h"
#include "wire.h"

static bool same_time(struct timespec a, struct timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

bool same_content(const struct stat *a, const struct stat *b) {
  return a->st_size == b->st_size && same_time(a->st_mtim, b->st_mtim) && same_time(a->st_ctim, b->st_ctim);
}

// If all parts have come, it is as if it had been brought whole.
static void join_parts(struct object *object) {
  if (!object->parts || parts_of(object)) return;
  object->status = state_of_parts(object->parts);
  object->whole = true;
  object->parts = NULL;
}

static int bring_parts_missing(struct object *object) {
  struct parts *parts = parts_of(object);
  int error = parts ? bring_missing(parts) : 0;
  join_parts(object);
  return error;
}

// Whether parts are here, now of the content that `status` says.
static bool brought_up(struct object *object, const struct stat *status) {
  join_parts(object);
  struct parts *parts = parts_of(object);
  if (!parts) return false;
  struct stat known = state_of_parts(parts);
  if (!same_content(&known, status)) renew_parts(parts, status);
  object->status = *status;
  return true;
}

int bring_parts(struct object *object, const struct stat *status) {
  if (!brought_up(object, status)) {
    if (object->here && object->whole && same_content(&object->status, status)) return 0;
    int fd = fresh_file(object);
    if (fd < 0) return -errno;
    int error = ftruncate(fd, status->st_size) ? -errno : 0;
    close(fd);
    object->whole = false;
    object->status = *status;
    if (error) return error;
    make_parts(object, status);
    drop_old();
  }
  // Home says whether it may be read.
  struct parts *parts = parts_of(object);
  int error = parts ? hold_range(parts, 0, 1, true) : 0;
  if (parts && !error) release_range(parts, 0, 1);
  join_parts(object);
  return error;
}

int keep(struct object *object, const struct stat *status, const uint8_t *bytes) {
  if (object->written || object->parts || (object->here && object->whole && same_content(&object->status, status))) return 0;
  int fd = fresh_file(object);
  if (fd < 0) return -errno;
  int error = store(fd, bytes, status->st_size, 0);
  close(fd);
  object->whole = error == 0;
  object->status = *status;
  drop_old();
  return error;
}

int bring(struct object *object, const struct stat *status) {
  if (brought_up(object, status)) return bring_parts_missing(object);
  if (object->here && object->whole && (object->written || same_content(&object->status, status))) return 0;
  if (object->written) {
    // Only its end is here. What is before it is brought into the hole.
    int fd = reopen(object, O_RDWR);
    if (fd < 0) return -errno;
    int error = fetch_part(object, fd, object->sent);
    close(fd);
    object->whole = error == 0;
    return error;
  }
  int fd = fresh_file(object);
  if (fd < 0) return -errno;
  object->whole = false;
  int error = fetch_whole(object, fd, status);
  close(fd);
  object->whole = error == 0;
  drop_old();
  return error;
}

static int copy_all(int from, int to) {
  struct stat status;
  if (ioctl(to, FICLONE, from) == 0) return 0;
  if (fstat(from, &status)) return -errno;
  off_t at = 0;
  if (lseek(to, 0, SEEK_SET) < 0 || ftruncate(to, 0)) return -errno;
  while (at < status.st_size) {
    ssize_t sent = sendfile(to, from, &at, 1 << 30);
    if (sent < 0) return -errno;
    if (sent == 0) break;
  }
  return 0;
}

// Keeps what home has, to compare with.
static int keep_base(struct object *object) {
  int from = reopen(object, O_RDONLY), base = nameless_file();
  int error = from < 0 || base < 0 ? -errno : copy_all(from, base);
  if (from >= 0) close(from);
  if (error) {
    if (base >= 0) close(base);
    return error;
  }
  object->base = base;
  return 0;
}

int make_ordinary(struct object *object) {
  int error = bring_parts_missing(object);
  if (error || !object->untouched) return error;
  error = keep_base(object);
  if (!error) object->untouched = false;
  return error;
}

void mark_untouched(struct object *object) {
  object->appending = false;
  object->sent = object->status.st_size;
  object->error = 0;
  object->untouched = true;
  mark_written(object);
}

// Nothing was written of it yet, and now it is empty.
static int make_empty(struct object *object, const struct stat *status) {
  if (object->parts) renew_parts(object->parts, status);
  join_parts(object);
  object->base = nameless_file();
  if (object->base < 0) return -errno;
  object->untouched = false;
  return 0;
}

int prepare_writing(struct object *object, const struct stat *status, bool empty, bool append, bool blind) {
  if (object->untouched) {
    int error = empty ? make_empty(object, status) : make_ordinary(object);
    if (error) return error;
  }
  if (object->written && empty) {
    // It is emptied under those that have it open.
    int fd = reopen(object, O_WRONLY);
    if (fd < 0 || ftruncate(fd, 0)) return -errno;
    close(fd);
    if (object->base >= 0 && ftruncate(object->base, 0)) return -errno;
    object->sent = 0;
    object->whole = true;
    object->status = *status;
    return 0;
  }
  if (object->written && (!object->appending || append)) {
    if (!object->whole && !blind) return bring(object, status);
    return 0;
  }
  if (object->written) {
    // It was only appended to until now.
    int error = write_back(object);
    if (!error) error = bring(object, status);
    if (!error && object->written) {
      error = keep_base(object);
      object->appending = false;
    }
    if (error || object->written) return error;
  }
  int error = 0;
  if (empty || (append && blind)) {
    int fd = fresh_file(object);
    if (fd < 0) return -errno;
    if (ftruncate(fd, status->st_size)) error = -errno;
    close(fd);
    object->whole = status->st_size == 0;
    object->status = *status;
  } else {
    error = bring(object, status);
  }
  if (!error && !append) error = keep_base(object);
  if (error) return error;
  object->appending = append;
  object->sent = status->st_size;
  object->error = 0;
  mark_written(object);
  drop_old();
  return 0;
}

static int change(struct object *object, const struct request *request) {
  struct answer answer = ask(request);
  struct stat status;
  if (answer.result >= 0 && read_status(answer.bytes, answer.length, &status)) object->status = status;
  free(answer.bytes);
  return answer.result < 0 ? (int)answer.result : 0;
}

static int write_piece(struct object *object, const char *piece, size_t length, off_t at) {
  char ino[24];
  snprintf(ino, sizeof ino, "%lu", (unsigned long)object->status.st_ino);
  return change(object, &(struct request){.call = HOME_WRITE,
                                          .words = {object->path, ino},
                                          .numbers = {at},
                                          .bytes = piece,
                                          .length = length});
}

static int set_length(struct object *object, off_t size) {
  return change(object, &(struct request){.call = HOME_TRUNCATE, .words = {object->path}, .numbers = {size}});
}

static int append_new(struct object *object, int fd, off_t size) {
  int error = 0;
  if (size < object->sent && !(error = set_length(object, size))) object->sent = size;
  char *piece = allocate(PIECE), ino[24];
  while (!error && object->sent < size) {
    ssize_t got = pread(fd, piece, size - object->sent < PIECE ? size - object->sent : PIECE, object->sent);
    if (got <= 0) {
      error = got < 0 ? -errno : 0;
      break;
    }
    snprintf(ino, sizeof ino, "%lu", (unsigned long)object->status.st_ino);
    error = change(object, &(struct request){.call = HOME_APPEND,
                                             .words = {object->path, ino},
                                             .bytes = piece,
                                             .length = got});
    if (!error) object->sent += got;
  }
  free(piece);
  return error;
}

// Sends what differs from what home has.
static int write_changes(struct object *object, int fd, off_t size) {
  struct stat base;
  if (fstat(object->base, &base)) return -errno;
  int error = 0;
  if (size < base.st_size) {
    error = set_length(object, size);
    if (!error && ftruncate(object->base, size)) error = -errno;
    base.st_size = size;
  }
  char *here = allocate(PIECE), *home = allocate(PIECE);
  for (off_t at = 0; !error && at < size;) {
    // What was never written, here and at home, is the same.
    ssize_t got = pread(fd, here, PIECE, at);
    if (got <= 0) {
      error = got < 0 ? -errno : 0;
      break;
    }
    ssize_t had = at < base.st_size ? pread(object->base, home, got, at) : 0;
    ssize_t from = 0, to = got;
    while (from < had && here[from] == home[from]) from++;
    if (had == got) while (to > from && here[to - 1] == home[to - 1]) to--;
    if (to > from) {
      error = write_piece(object, here + from, to - from, at + from);
      if (!error && pwrite(object->base, here + from, to - from, at + from) != to - from) error = -errno;
    }
    at += got;
  }
  free(here);
  free(home);
  return error;
}

int write_back(struct object *object) {
  if (!object->written) return 0;
  // Whoever closed it has written all of it before.
  object->closed = false;
  bool last = !has_writers(object);
  int error = 0;
  if (!object->gone && !object->untouched) {
    struct stat here;
    int fd = reopen(object, O_RDONLY);
    if (fd < 0) return -errno;
    if (fstat(fd, &here)) error = -errno;
    else if (object->appending) error = append_new(object, fd, here.st_size);
    else error = write_changes(object, fd, here.st_size);
    close(fd);
    if (!error && last && here.st_size != object->status.st_size) object->whole = false;
    // It is not the file any more that was opened.
    if (error == -ESTALE || error == -ENOENT) mark_gone(object);
    if (!error) note_status(object->path, &object->status);
  }
  object->error = error;
  if (last && (error == 0 || object->gone)) {
    unmark_written(object);
    object->untouched = false;
    if (object->base >= 0) close(object->base);
    object->base = -1;
  }
  return error;
}

int shortened(struct object *object, off_t size) {
  if (!object->here || object->untouched) return 0;
  int fd = reopen(object, O_WRONLY);
  int error = fd < 0 || ftruncate(fd, size) || (object->base >= 0 && ftruncate(object->base, size)) ? -errno : 0;
  if (fd >= 0) close(fd);
  object->sent = size;
  return error;
}

void overlay(struct object *object, struct stat *status) {
  struct stat here;
  int fd = object->written && !object->untouched ? reopen(object, O_RDONLY) : -1;
  if (fd < 0) return;
  if (fstat(fd, &here) == 0) {
    if (here.st_size != status->st_size) status->st_mtim = status->st_ctim = here.st_mtim;
    status->st_size = here.st_size;
    status->st_blocks = here.st_blocks;
  }
  close(fd);
}

static atomic_bool failed;

void write_back_quietly(struct object *object) {
  pthread_mutex_lock(&object->lock);
  int before = object->error, error = write_back(object);
  if (error && error != before) warn("%s could not be written at home: %s", object->path, strerror(-error));
  if (error) failed = true;
  pthread_mutex_unlock(&object->lock);
}

static void write_back_closed(struct object *object) {
  if (object->closed) write_back_quietly(object);
}

void settle(void) {
  if (!has_written()) return;
  drain_closed();
  each_written(write_back_closed);
}

bool write_back_all(void) {
  each_written(write_back_quietly);
  return !failed;
}
