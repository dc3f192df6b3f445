// Opening files and directories, reading directories, and closing.
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attributes.h"
#include "calls.h"
#include "content.h"
#include "parts.h"
#include "say.h"
#include "target.h"
#include "wire.h"

// As home understands them (src/site/remote-io.ts).
enum { HOME_READS = 1, HOME_WRITES = 2, HOME_CREATES = 4, HOME_EXCLUDES = 8, HOME_EMPTIES = 16, HOME_NO_LINK = 32 };

// Bytes.
#define FIRST_PIECE (64 << 10)
// Not through a link at the end: what is known of that is not what is known of its target.
#define NO_LINK 1

static int home_flags(int flags) {
  int way = flags & O_ACCMODE;
  return (way != O_WRONLY ? HOME_READS : 0) | (way != O_RDONLY ? HOME_WRITES : 0) | (flags & O_CREAT ? HOME_CREATES : 0) |
         (flags & O_EXCL ? HOME_EXCLUDES : 0) | (flags & O_TRUNC ? HOME_EMPTIES : 0) | (flags & O_NOFOLLOW ? HOME_NO_LINK : 0);
}

static bool flags_of(const struct call *call, int *flags, mode_t *mode) {
  switch (call->number) {
    case SYS_openat:
      *flags = call->args[2];
      *mode = call->args[3];
      return true;
    case SYS_openat2: {
      struct open_how how = {0};
      if (call->args[3] < sizeof how || !read_memory(call->tid, call->args[2], &how, sizeof how)) return false;
      *flags = how.flags;
      *mode = how.mode;
      return true;
    }
#ifdef SYS_open
    case SYS_creat:
      *flags = O_CREAT | O_WRONLY | O_TRUNC;
      *mode = call->args[1];
      return true;
    case SYS_open:
      *flags = call->args[1];
      *mode = call->args[2];
      return true;
#endif
    default:
      return false;
  }
}

static struct outcome descriptor(int fd, int flags) {
  if (fd < 0) return value(-errno);
  return (struct outcome){.kind = DESCRIPTOR, .value = fd, .close_on_exec = flags & O_CLOEXEC};
}

// A file with the directory's entries: its offset is that of the directory's stream.
static struct outcome open_directory(const char *path, int flags) {
  unsigned char *records;
  size_t length;
  int error = list_directory(path, &records, &length);
  if (error) return value(error);
  struct object *object = directory_object(path);
  pthread_mutex_lock(&object->lock);
  int fd = object->here ? reopen(object, O_RDONLY) : -1;
  unsigned char *before = fd < 0 ? NULL : allocate(length + 1);
  bool same = before && pread(fd, before, length + 1, 0) == (ssize_t)length && memcmp(before, records, length) == 0;
  free(before);
  if (!same) {
    if (fd >= 0) close(fd);
    int made = fresh_file(object);
    bool good = made >= 0 && write(made, records, length) == (ssize_t)length;
    if (made >= 0) close(made);
    fd = good ? reopen(object, O_RDONLY) : -1;
    drop_old();
  }
  pthread_mutex_unlock(&object->lock);
  free(records);
  return descriptor(fd, flags);
}

// A large file that is not changed now is brought in parts. NULL: it is not one.
static struct parts *open_parts(struct object *object, const struct stat *status, int flags, int *error) {
  if (object->written && !object->untouched) return NULL;
  *error = bring_parts(object, status);
  struct parts *parts = *error ? NULL : parts_of(object);
  if (parts && (flags & O_ACCMODE) == O_RDWR && !object->untouched) mark_untouched(object);
  return parts;
}

static struct outcome open_file(const struct call *call, const char *path, const struct stat *status, int flags, bool empty) {
  int way = flags & O_ACCMODE, error = 0;
  struct object *object = object_of(path, status);
  pthread_mutex_lock(&object->lock);
  bool writes = way != O_RDONLY;
  bool large = status->st_size >= LARGE && !empty && way != O_WRONLY && !(flags & O_APPEND);
  struct parts *parts = large && can_have_partial(call->tid) ? open_parts(object, status, flags, &error) : NULL;
  if (!parts && !error)
    error = writes ? prepare_writing(object, status, empty, flags & O_APPEND, way == O_WRONLY) : bring(object, status);
  int fd = error ? -1 : reopen(object, way | (flags & (O_APPEND | O_NONBLOCK)));
  // It was another when it was brought just now.
  if (!error && !object->written && !same_content(&object->status, status)) note_status(path, &object->status);
  struct outcome outcome = error ? value(error) : descriptor(fd, flags);
  if (parts) outcome.partial = object;
  pthread_mutex_unlock(&object->lock);
  return outcome;
}

// Content that came with a file's state.
struct first {
  uint8_t *bytes;
  bool whole;
};

// A file that was never asked for: its state and a first piece of it, all of a small one, come together.
static bool read_first(const char *path, struct stat *status, struct first *first) {
  struct answer answer = ask(&(struct request){.call = HOME_READ, .words = {path}, .numbers = {0, FIRST_PIECE, NO_LINK}});
  if (answer.result < 0 || !read_status(answer.bytes, answer.length, status)) {
    free(answer.bytes);
    return false;
  }
  *first = (struct first){.bytes = answer.bytes, .whole = answer.length - STATUS_BYTES == (uint64_t)status->st_size};
  note_status(path, status);
  return true;
}

static void keep_first(const char *path, const struct stat *status, const struct first *first) {
  if (!first->whole) return;
  struct object *object = object_of(path, status);
  pthread_mutex_lock(&object->lock);
  // If it cannot be kept, it is brought, and whoever opens it hears why it cannot.
  keep(object, status, first->bytes + STATUS_BYTES);
  pthread_mutex_unlock(&object->lock);
}

static int create_at_home(const char *path, int flags, mode_t mode, struct stat *status, bool *made) {
  struct answer answer =
      ask(&(struct request){.call = HOME_OPEN, .words = {path}, .numbers = {home_flags(flags), mode & 0777}});
  int error = answer.result < 0 ? (int)answer.result : read_status(answer.bytes, answer.length, status) ? 0 : -EIO;
  *made = answer.result > 0;
  free(answer.bytes);
  return error;
}

struct outcome do_open(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  int flags;
  mode_t mode;
  if (one->object) {
    // A new descriptor of a file in the cache: its number would not tell what it is.
    pthread_mutex_lock(&one->object->lock);
    int error = make_ordinary(one->object);
    pthread_mutex_unlock(&one->object->lock);
    return error ? value(error) : as_it_is();
  }
  if (!flags_of(call, &flags, &mode)) return value(-EINVAL);
  if ((flags & O_TMPFILE) == O_TMPFILE) return value(-EOPNOTSUPP);
  // What was closed before is at home before somebody else sees it there.
  settle();
  struct stat status;
  bool made = false, changes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
  if (flags & O_PATH) changes = false;
  bool plain = !changes && !(flags & (O_PATH | O_NOFOLLOW | O_DIRECTORY));
  struct first first = {0};
  if (plain && is_new(one->path) && read_first(one->path, &status, &first)) {
    keep_first(one->path, &status, &first);
    free(first.bytes);
  } else if (!changes) {
    int error = attributes(one->path, !(flags & O_NOFOLLOW), &status);
    if (error) return value(error);
  } else {
    int error = create_at_home(one->path, flags, mode & ~umask_of(call->tid), &status, &made);
    if (error) return value(error);
    if (made) forget_name(one->path);
    note_status(one->path, &status);
  }
  if (S_ISDIR(status.st_mode)) return changes ? value(-EISDIR) : open_directory(one->path, flags);
  if (flags & O_DIRECTORY) return value(-ENOTDIR);
  if (S_ISLNK(status.st_mode)) return value(-ELOOP);
  if (!S_ISREG(status.st_mode)) return value(-EACCES);
  return open_file(call, one->path, &status, flags & O_PATH ? O_RDONLY | (flags & O_CLOEXEC) : flags, made || flags & O_TRUNC);
}

bool open_now(const struct call *call, const struct operand *one, struct outcome *outcome) {
  int flags;
  mode_t mode;
  struct stat status;
  if (!one->path || one->object || has_written() || call->number == SYS_openat2 || !flags_of(call, &flags, &mode)) return false;
  if (flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_PATH | O_DIRECTORY | O_NOFOLLOW)) return false;
  int error = believed_attributes(one->path, true, &status);
  if (error) {
    *outcome = value(error);
    return error != -EAGAIN;
  }
  struct object *object = S_ISREG(status.st_mode) ? known_object(&status) : NULL;
  if (!object || pthread_mutex_trylock(&object->lock)) return false;
  bool good = object->here && object->whole && !object->parts && same_content(&object->status, &status) &&
              strcmp(object->path, one->path) == 0;
  if (good) *outcome = descriptor(reopen(object, flags & O_NONBLOCK), flags);
  pthread_mutex_unlock(&object->lock);
  return good;
}

// Whole records from the offset on, which moves behind them.
struct outcome do_entries(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  if (!one->object->directory) return value(-ENOTDIR);
  int fd = take_descriptor(call->tid, (int)call->args[0]);
  if (fd < 0) return value(-errno);
  size_t room = call->args[2] < 1 << 20 ? call->args[2] : 1 << 20;
  unsigned char *records = allocate(room);
  off_t at = lseek(fd, 0, SEEK_CUR);
  ssize_t got = pread(fd, records, room, at);
  size_t whole = 0;
  while (got > 0 && whole + 19 < (size_t)got) {
    uint16_t size;
    memcpy(&size, records + whole + 16, sizeof size);
    if (size == 0 || whole + size > (size_t)got) break;
    whole += size;
  }
  int64_t result = got < 0 ? -errno : (int64_t)whole;
  if (got > 0 && whole == 0) result = -EINVAL;
  if (whole > 0 && !write_memory(call->tid, call->args[1], records, whole)) result = -EFAULT;
  else if (whole > 0) lseek(fd, at + whole, SEEK_SET);
  free(records);
  close(fd);
  return value(result);
}

struct outcome do_close(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)call;
  (void)two;
  struct object *object = one->object;
  if (!object->written) return as_it_is();
  pthread_mutex_lock(&object->lock);
  int error = write_back(object);
  pthread_mutex_unlock(&object->lock);
  return error ? value(error) : as_it_is();
}

struct outcome do_sync(const struct call *call, const struct operand *one, const struct operand *two) {
  struct outcome done = do_close(call, one, two);
  if (done.kind == VALUE || one->object->directory) return done.kind == VALUE ? done : value(0);
  return value(ask_result(&(struct request){.call = HOME_FSYNC, .words = {one->object->path}}));
}
