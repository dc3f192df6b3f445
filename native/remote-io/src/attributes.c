#include "attributes.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "paths.h"
#include "say.h"
#include "wire.h"

// How long what home said is believed; microseconds.
#define BELIEVED 1000000
// All names of a directory are asked for if it was asked for so many within that time, and for more than a few of those that it has.
#define MANY 4
#define FEW(names) ((names) / 32)
// A directory with more names is not asked for as a whole to know of one.
#define MOST_NAMES 20000
#define BUCKETS 65536

struct known {
  char *path;
  // Until when they are believed, by the monotonic clock.
  int64_t until, followed_until, listed_until;
  // When the question was asked whose answer they are, or when it was found that they may be wrong. Answers to older ones come too late.
  int64_t told, list_told;
  int error, followed_error;  // 0, or an errno below 0
  struct stat status, followed;
  int64_t asked_since;
  unsigned asked, asked_before;
  size_t names;  // when it was listed last
  bool huge;
  bool seen;  // it was there once
  struct known *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known *buckets[BUCKETS];
// What was learned before is not believed.
static int64_t not_before;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

// The lock must be held.
static struct known *known(const char *path) {
  uint64_t hash = 1469598103934665603u;
  for (const char *at = path; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
  struct known **bucket = &buckets[hash % BUCKETS];
  for (struct known *one = *bucket; one; one = one->next)
    if (strcmp(one->path, path) == 0) return one;
  struct known *fresh = allocate(sizeof *fresh);
  fresh->path = copied(path);
  fresh->next = *bucket;
  return *bucket = fresh;
}

static bool believed(int64_t until, int64_t told, int64_t time) { return until > time && told >= not_before; }

// `asked`, `came`: when home was asked, and when it had answered.
static void learn(struct known *one, const struct stat *status, int error, int64_t asked, int64_t came) {
  if (asked < one->told) return;
  one->told = asked;
  one->error = error;
  one->until = came + BELIEVED;
  one->followed_until = 0;
  if (!status) return;
  one->status = *status;
  one->seen = true;
}

// The directory's list was brought: each of its names is known, and all others are not there.
static void learn_names(const char *path, const uint8_t *bytes, size_t length, int64_t asked, int64_t came) {
  for (size_t at = 0; at + 2 + STATUS_BYTES <= length;) {
    size_t name = bytes[at] | bytes[at + 1] << 8;
    if (at + 2 + name + STATUS_BYTES > length) return;
    char *whole = printed("%s/%.*s", strcmp(path, "/") == 0 ? "" : path, (int)name, (const char *)bytes + at + 2);
    struct stat status;
    read_status(bytes + at + 2 + name, STATUS_BYTES, &status);
    pthread_mutex_lock(&lock);
    learn(known(whole), &status, 0, asked, came);
    pthread_mutex_unlock(&lock);
    free(whole);
    at += 2 + name + STATUS_BYTES;
  }
}

// All names with their states, in pieces; `count`: how many.
static int fetch_names(const char *path, uint8_t **all, size_t *length, size_t *count, size_t most) {
  *all = NULL;
  *length = *count = 0;
  char *after = copied("");
  int64_t asked = now();
  for (;;) {
    struct answer answer = ask(&(struct request){.call = HOME_LIST, .words = {path, after}});
    free(after);
    if (answer.result < 0) {
      free(answer.bytes);
      free(*all);
      return answer.result;
    }
    *all = realloc(*all, *length + answer.length + 1);
    if (!*all) fail("no memory is left");
    if (answer.length) memcpy(*all + *length, answer.bytes, answer.length);
    after = NULL;
    for (size_t at = *length, end = *length + answer.length; at + 2 + STATUS_BYTES <= end;) {
      size_t name = (*all)[at] | (*all)[at + 1] << 8;
      if (at + 2 + name + STATUS_BYTES > end) break;
      free(after);
      after = printed("%.*s", (int)name, (char *)*all + at + 2);
      at += 2 + name + STATUS_BYTES;
      *count += 1;
    }
    *length += answer.length;
    free(answer.bytes);
    // The result says whether there are more.
    if (answer.result == 0 || !after || *count > most) break;
  }
  bool whole = *count <= most;
  free(after);
  // All at once: what is not known then is not there.
  int64_t came = now();
  learn_names(path, *all, *length, asked, came);
  pthread_mutex_lock(&lock);
  struct known *directory = known(path);
  directory->huge = !whole;
  directory->names = *count;
  if (whole && asked >= directory->list_told) {
    directory->list_told = asked;
    directory->listed_until = came + BELIEVED;
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

static void count_question(struct known *directory, int64_t time) {
  if (time - directory->asked_since > BELIEVED) {
    directory->asked_before = time - directory->asked_since > 2 * BELIEVED ? 0 : directory->asked;
    directory->asked_since = time;
    directory->asked = 0;
  }
  directory->asked++;
}

// Whether it is better to ask for all names of the directory.
static bool asks_often(const struct known *directory) {
  unsigned asked = directory->asked > directory->asked_before ? directory->asked : directory->asked_before;
  return asked > MANY + FEW(directory->names) && !directory->huge;
}

static int ask_status(const char *path, bool follow, struct stat *status) {
  struct answer answer = ask(&(struct request){.call = HOME_STAT, .words = {path}, .numbers = {follow}});
  int error = answer.result < 0 ? (int)answer.result : read_status(answer.bytes, answer.length, status) ? 0 : -EIO;
  free(answer.bytes);
  return error;
}

// What is believed; -EAGAIN if nothing is. The lock must be held.
static int believed_of_name(const char *path, struct known *directory, struct stat *status, int64_t time) {
  struct known *one = known(path);
  if (believed(one->until, one->told, time)) {
    *status = one->status;
    return one->error;
  }
  // Of what was in the list, or was heard of later, the list says nothing.
  bool unlisted = directory && believed(directory->listed_until, directory->list_told, time) && one->told < directory->list_told;
  return unlisted ? -ENOENT : -EAGAIN;
}

static int attributes_of_name(const char *path, struct stat *status) {
  if (strlen(strrchr(path, '/') + 1) > NAME_MAX) return -ENAMETOOLONG;
  char *parent = parent_of(path);
  bool inside = is_home(parent);
  for (int turn = 0;; turn++) {
    int64_t time = now();
    pthread_mutex_lock(&lock);
    struct known *directory = inside ? known(parent) : NULL;
    if (directory && turn == 0) count_question(directory, time);
    int error = believed_of_name(path, directory, status, time);
    bool all = error == -EAGAIN && turn == 0 && directory && asks_often(directory);
    pthread_mutex_unlock(&lock);
    if (all) {
      uint8_t *names;
      size_t length, count;
      // If the directory cannot be listed, the name is asked for.
      if (fetch_names(parent, &names, &length, &count, MOST_NAMES) == 0) free(names);
      continue;
    }
    if (error == -EAGAIN) {
      error = ask_status(path, false, status);
      pthread_mutex_lock(&lock);
      learn(known(path), error ? NULL : status, error, time, time);
      pthread_mutex_unlock(&lock);
    }
    free(parent);
    return error;
  }
}

// What is believed of a link's target; -EAGAIN if nothing is.
static int believed_target(const char *path, struct stat *status) {
  int error = -EAGAIN;
  pthread_mutex_lock(&lock);
  struct known *one = known(path);
  if (believed(one->followed_until, one->told, now())) {
    *status = one->followed;
    error = one->followed_error;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

int attributes(const char *path, bool follow, struct stat *status) {
  int error = attributes_of_name(path, status);
  if (error || !follow || !S_ISLNK(status->st_mode)) return error;
  error = believed_target(path, status);
  if (error != -EAGAIN) return error;
  int64_t time = now();
  error = ask_status(path, true, status);
  pthread_mutex_lock(&lock);
  struct known *one = known(path);
  if (time >= one->told) {
    one->followed_error = error;
    one->followed = *status;
    one->followed_until = time + BELIEVED;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

int believed_attributes(const char *path, bool follow, struct stat *status) {
  if (strlen(strrchr(path, '/') + 1) > NAME_MAX) return -ENAMETOOLONG;
  char *parent = parent_of(path);
  int64_t time = now();
  pthread_mutex_lock(&lock);
  struct known *directory = is_home(parent) ? known(parent) : NULL;
  int error = believed_of_name(path, directory, status, time);
  // Whoever has to ask counts it himself.
  if (directory && error != -EAGAIN) count_question(directory, time);
  pthread_mutex_unlock(&lock);
  free(parent);
  return error || !follow || !S_ISLNK(status->st_mode) ? error : believed_target(path, status);
}

bool is_new(const char *path) {
  char *parent = parent_of(path);
  int64_t time = now();
  pthread_mutex_lock(&lock);
  struct known *one = known(path), *directory = is_home(parent) ? known(parent) : NULL;
  bool fresh = !one->seen && !believed(one->until, one->told, time) &&
               !(directory && believed(directory->listed_until, directory->list_told, time));
  pthread_mutex_unlock(&lock);
  free(parent);
  return fresh;
}

void note_status(const char *path, const struct stat *status) {
  pthread_mutex_lock(&lock);
  struct known *one = known(path);
  // What is known of a link is not what is known of its target.
  int64_t time = now();
  if (believed(one->until, one->told, time) && one->error == 0 && S_ISLNK(one->status.st_mode)) one->followed_until = 0;
  else learn(one, status, 0, time, time);
  pthread_mutex_unlock(&lock);
}

void note_absence(const char *path) {
  int64_t time = now();
  pthread_mutex_lock(&lock);
  learn(known(path), NULL, -ENOENT, time, time);
  pthread_mutex_unlock(&lock);
}

static void forget(struct known *one) {
  one->until = 0;
  one->told = now() + 1;
}

void forget_name(const char *path) {
  char *parent = parent_of(path);
  pthread_mutex_lock(&lock);
  forget(known(path));
  struct known *directory = known(parent);
  forget(directory);
  directory->listed_until = 0;
  directory->list_told = directory->told;
  pthread_mutex_unlock(&lock);
  free(parent);
}

void forget_all(void) {
  pthread_mutex_lock(&lock);
  not_before = now() + 1;
  pthread_mutex_unlock(&lock);
}

static size_t add_record(unsigned char *to, size_t offset, const char *name, size_t length, uint64_t ino, int kind) {
  // struct linux_dirent64: d_ino, d_off, d_reclen, d_type, d_name; a multiple of 8 bytes.
  size_t size = (19 + length + 1 + 7) / 8 * 8;
  int64_t next = offset + size;
  memset(to, 0, size);
  memcpy(to, &ino, 8);
  memcpy(to + 8, &next, 8);
  memcpy(to + 16, &(uint16_t){size}, 2);
  to[18] = kind;
  memcpy(to + 19, name, length);
  return size;
}

int list_directory(const char *path, unsigned char **records, size_t *length) {
  uint8_t *all;
  size_t bytes, count, used = 0;
  int error = fetch_names(path, &all, &bytes, &count, SIZE_MAX);
  if (error) return error;
  unsigned char *made = allocate(2 * 32 + bytes + count * 32);
  struct stat self;
  uint64_t ino = attributes(path, true, &self) == 0 ? self.st_ino : 1;
  used += add_record(made + used, used, ".", 1, ino, DT_DIR);
  used += add_record(made + used, used, "..", 2, 1, DT_DIR);
  for (size_t at = 0; at + 2 + STATUS_BYTES <= bytes;) {
    size_t name = all[at] | all[at + 1] << 8;
    if (at + 2 + name + STATUS_BYTES > bytes) break;
    struct stat status;
    read_status(all + at + 2 + name, STATUS_BYTES, &status);
    used += add_record(made + used, used, (char *)all + at + 2, name, status.st_ino, IFTODT(status.st_mode));
    at += 2 + name + STATUS_BYTES;
  }
  free(all);
  *records = made;
  *length = used;
  return 0;
}
