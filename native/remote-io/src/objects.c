#include "objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "say.h"

#define BUCKETS 4096

// A file in the cache.
struct local {
  struct identity identity;
  uint64_t number;
  struct object *object;
  struct local *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *by_home[BUCKETS], *first_written;
static struct local *by_local[BUCKETS];
static atomic_uint_fast64_t files, last_number, written;
// Whether some file may be one that `drop_old` deletes.
static atomic_bool may_have_old;
static int cache = -1, watch = -1;

void open_cache(const char *directory) {
  cache = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (cache < 0) fail_errno("%s", directory);
  watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (watch < 0 || inotify_add_watch(watch, directory, IN_CLOSE_WRITE) < 0) fail_errno("%s cannot be watched", directory);
}

static size_t bucket_of(uint64_t dev, uint64_t ino) { return (dev * 31 + ino) % BUCKETS; }

static struct object *make_object(const char *path) {
  struct object *object = allocate(sizeof *object);
  object->path = copied(path);
  object->base = -1;
  pthread_mutex_init(&object->lock, NULL);
  return object;
}

// The lock must be held.
static struct object *find(struct object *found, const struct stat *status) {
  while (found && (found->directory || found->gone || found->status.st_dev != status->st_dev ||
                   found->status.st_ino != status->st_ino))
    found = found->next;
  return found;
}

struct object *known_object(const struct stat *status) {
  pthread_mutex_lock(&lock);
  struct object *found = find(by_home[bucket_of(status->st_dev, status->st_ino)], status);
  pthread_mutex_unlock(&lock);
  return found;
}

struct object *object_of(const char *path, const struct stat *status) {
  struct object **bucket = &by_home[bucket_of(status->st_dev, status->st_ino)];
  pthread_mutex_lock(&lock);
  struct object *found = find(*bucket, status);
  if (!found) {
    found = make_object(path);
    found->status.st_dev = status->st_dev;
    found->status.st_ino = status->st_ino;
    found->next = *bucket;
    *bucket = found;
  } else if (strcmp(found->path, path) != 0 && !found->written) {
    // The one before stays: somebody may be asking for it.
    found->path = copied(path);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

struct object *directory_object(const char *path) {
  uint64_t hash = 5381;
  for (const char *at = path; *at; at++) hash = hash * 33 + (unsigned char)*at;
  struct object **bucket = &by_home[bucket_of(0, hash)];
  pthread_mutex_lock(&lock);
  struct object *found = *bucket;
  while (found && (!found->directory || found->gone || strcmp(found->path, path) != 0)) found = found->next;
  if (!found) {
    found = make_object(path);
    found->directory = true;
    found->next = *bucket;
    *bucket = found;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

struct object *opened_object(pid_t tid, int fd, uint64_t *number) {
  struct identity identity;
  if (files == 0 || fd < 0 || !identify(tid, fd, &identity)) return NULL;
  pthread_mutex_lock(&lock);
  struct local *one = by_local[bucket_of(identity.dev, identity.ino)];
  while (one && (one->identity.dev != identity.dev || one->identity.ino != identity.ino)) one = one->next;
  struct object *object = one ? one->object : NULL;
  if (one && number) *number = one->number;
  pthread_mutex_unlock(&lock);
  return object;
}

bool has_objects(void) { return files > 0; }
bool has_written(void) { return written > 0; }

static void name_of(uint64_t number, char name[24]) { snprintf(name, 24, "f%lu", (unsigned long)number); }

int fresh_file(struct object *object) {
  char name[24];
  uint64_t number = ++last_number;
  name_of(number, name);
  int fd = openat(cache, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  struct stat status;
  if (fd < 0) return -1;
  if (fstat(fd, &status)) {
    close(fd);
    return -1;
  }
  struct local *one = allocate(sizeof *one);
  *one = (struct local){.identity = {status.st_dev, status.st_ino}, .number = number, .object = object};
  struct local **bucket = &by_local[bucket_of(status.st_dev, status.st_ino)];
  pthread_mutex_lock(&lock);
  one->next = *bucket;
  *bucket = one;
  if (object->here) may_have_old = true;
  object->number = number;
  object->here = true;
  pthread_mutex_unlock(&lock);
  files++;
  return fd;
}

int reopen(const struct object *object, int flags) {
  char name[24];
  name_of(object->number, name);
  return openat(cache, name, flags | O_CLOEXEC | O_NOFOLLOW);
}

int nameless_file(void) {
  char name[24];
  snprintf(name, sizeof name, "b%lu", (unsigned long)++last_number);
  int fd = openat(cache, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) unlinkat(cache, name, 0);
  return fd;
}

bool has_writers(const struct object *object) {
  int fd = reopen(object, O_RDONLY);
  if (fd < 0) return false;
  // A lease for reading is granted only if nobody has it open for writing.
  bool has = fcntl(fd, F_SETLEASE, F_RDLCK) != 0;
  if (!has) fcntl(fd, F_SETLEASE, F_UNLCK);
  close(fd);
  return has;
}

bool in_use(const struct object *object) {
  int fd = reopen(object, O_RDONLY);
  if (fd < 0) return false;
  bool used = fcntl(fd, F_SETLEASE, F_WRLCK) != 0;
  close(fd);
  return used;
}

// A lease for writing is granted only if nobody else has it open at all.
static bool is_unused(const char *name) {
  int fd = openat(cache, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT;
  bool unused = fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
  if (unused) unlinkat(cache, name, 0);
  close(fd);
  return unused;
}

void drop_old(void) {
  if (!atomic_exchange(&may_have_old, false)) return;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct local **at = &by_local[i]; *at;) {
      struct local *one = *at;
      if (one->number == one->object->number && !one->object->gone) {
        at = &one->next;
        continue;
      }
      char name[24];
      name_of(one->number, name);
      if (!one->object->written && is_unused(name)) {
        *at = one->next;
        free(one);
        files--;
      } else {
        may_have_old = true;
        at = &one->next;
      }
    }
  pthread_mutex_unlock(&lock);
}

void mark_gone(struct object *object) {
  object->gone = true;
  may_have_old = true;
}

void mark_written(struct object *object) {
  if (object->written) return;
  pthread_mutex_lock(&lock);
  object->written = true;
  object->next_written = first_written;
  first_written = object;
  pthread_mutex_unlock(&lock);
  written++;
}

void unmark_written(struct object *object) {
  if (!object->written) return;
  pthread_mutex_lock(&lock);
  object->written = false;
  for (struct object **at = &first_written; *at; at = &(*at)->next_written)
    if (*at == object) {
      *at = object->next_written;
      break;
    }
  pthread_mutex_unlock(&lock);
  written--;
}

void each_written(void (*work)(struct object *)) {
  pthread_mutex_lock(&lock);
  size_t count = 0;
  for (struct object *one = first_written; one; one = one->next_written) count++;
  struct object **all = allocate((count + 1) * sizeof *all);
  count = 0;
  for (struct object *one = first_written; one; one = one->next_written) all[count++] = one;
  pthread_mutex_unlock(&lock);
  // Objects are never freed.
  for (size_t i = count; i-- > 0;) work(all[i]);
  free(all);
}

void each_file(void (*work)(struct object *)) {
  for (size_t i = 0; i < BUCKETS; i++) {
    pthread_mutex_lock(&lock);
    struct object *one = by_home[i];
    pthread_mutex_unlock(&lock);
    for (; one; one = one->next)
      if (!one->directory) work(one);
  }
}

// What lies behind `path` in a name below it; NULL if it is neither it nor below.
static const char *behind(const char *name, const char *path) {
  size_t length = strlen(path);
  return strncmp(name, path, length) == 0 && (name[length] == 0 || name[length] == '/') ? name + length : NULL;
}

static void each_below(const char *path, const char *to) {
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct object *one = by_home[i]; one; one = one->next) {
      const char *rest = one->gone ? NULL : behind(one->path, path);
      if (!rest) continue;
      // Directories are found by their paths, so they cannot move.
      if (to && !one->directory) {
        one->path = printed("%s%s", to, rest);
      } else {
        mark_gone(one);
      }
    }
}

void objects_moved(const char *from, const char *to) {
  pthread_mutex_lock(&lock);
  each_below(to, NULL);
  each_below(from, to);
  pthread_mutex_unlock(&lock);
}

void objects_removed(const char *path) {
  pthread_mutex_lock(&lock);
  each_below(path, NULL);
  pthread_mutex_unlock(&lock);
}

bool drain_closed(void) {
  char buffer[16384] __attribute__((aligned(8)));
  bool any = false;
  for (ssize_t got; (got = read(watch, buffer, sizeof buffer)) > 0;)
    for (char *at = buffer; at < buffer + got;) {
      struct inotify_event *event = (struct inotify_event *)at;
      at += sizeof *event + event->len;
      pthread_mutex_lock(&lock);
      for (struct object *one = first_written; one; one = one->next_written) {
        char name[24];
        name_of(one->number, name);
        if (event->mask & IN_Q_OVERFLOW || (event->len > 0 && strcmp(name, event->name) == 0)) one->closed = any = true;
      }
      pthread_mutex_unlock(&lock);
    }
  return any;
}
