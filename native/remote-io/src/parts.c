#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fetch.h"
#include "say.h"
#include "wire.h"

#define PER_REQUEST (MOST_AT_ONCE / BLOCK)
// How far reads in sequence are run ahead of; blocks.
#define MOST_AHEAD 128
// How many pieces are on their way at once.
#define AT_ONCE 4
// If a file changes while all of it is brought, it is brought again, but not for ever.
#define TRIES 5

enum state { ABSENT, COMING, HERE };

struct block {
  uint8_t state;
  bool used;         // since the hand came by
  uint16_t readers;  // it stays as long as there are any
};

struct parts {
  struct object *object;
  struct stat status;  // as home had it when the newest of it came
  struct block *blocks;
  size_t count, capacity, here;
  unsigned version;    // of the content
  unsigned versions_left;
  bool kept;           // none of it is taken away
  size_t next, ahead;  // the block behind the last read; how far is read ahead
  atomic_bool whole;
  pthread_mutex_t turn;
  struct parts *other;
};

struct run {
  struct parts *parts;
  size_t first, count;
  unsigned version;
  struct run *next;
};

// It is not held while home is asked, nor while bytes are copied.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER, wanted = PTHREAD_COND_INITIALIZER;
static struct parts *all;
static atomic_size_t incomplete;
static size_t room, used;  // blocks
static struct run *first_run, **last_run = &first_run;
// Where blocks were taken away last.
static struct parts *hand;
static size_t hand_at;

void set_room(uint64_t bytes) { room = bytes / BLOCK; }
bool has_parts(void) { return incomplete > 0; }
struct parts *parts_of(const struct object *object) {
  struct parts *parts = object->parts;
  return parts && !parts->whole ? parts : NULL;
}
void begin_turn(struct parts *parts) { pthread_mutex_lock(&parts->turn); }
bool try_turn(struct parts *parts) { return pthread_mutex_trylock(&parts->turn) == 0; }
void end_turn(struct parts *parts) { pthread_mutex_unlock(&parts->turn); }

// The lock must be held for all that follow, if nothing else is said.

static void set_size(struct parts *parts, off_t size) {
  size_t count = (size + BLOCK - 1) / BLOCK;
  if (count > parts->capacity) {
    parts->blocks = realloc(parts->blocks, count * sizeof *parts->blocks);
    if (!parts->blocks) fail("no memory is left");
    memset(parts->blocks + parts->capacity, 0, (count - parts->capacity) * sizeof *parts->blocks);
    parts->capacity = count;
  }
  parts->count = count;
}

static void finish_if_whole(struct parts *parts) {
  if (parts->here < parts->count || parts->whole) return;
  used -= parts->here;
  parts->whole = true;
  incomplete--;
}

void make_parts(struct object *object, const struct stat *status) {
  struct parts *parts = allocate(sizeof *parts);
  parts->object = object;
  parts->status = *status;
  parts->versions_left = TRIES;
  pthread_mutex_init(&parts->turn, NULL);
  pthread_mutex_lock(&lock);
  set_size(parts, status->st_size);
  parts->other = all;
  all = parts;
  incomplete++;
  object->parts = parts;
  pthread_mutex_unlock(&lock);
}

static void punch(const struct parts *parts, size_t first, size_t count) {
  int fd = reopen(parts->object, O_WRONLY);
  if (fd < 0) return;
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first * BLOCK, (off_t)count * BLOCK);
  close(fd);
}

static bool can_go(const struct block *block) { return block->state == HERE && block->readers == 0; }

// Takes away what was not used for long: a hand goes round over all blocks, and takes those that were not used since it came by.
static void make_room(size_t more) {
  if (used + more <= room) return;
  size_t steps = 0, target = room - room / 16;
  for (struct parts *one = all; one; one = one->other) steps += 2 * (one->count + 1);
  for (; steps > 0 && used + more > target; steps--) {
    if (!hand || hand_at >= hand->count || hand->kept || hand->whole) {
      hand = hand && hand->other ? hand->other : all;
      hand_at = 0;
      continue;
    }
    size_t from = hand_at;
    for (; hand_at < hand->count && hand_at - from < PER_REQUEST; hand_at++) {
      struct block *block = &hand->blocks[hand_at];
      if (!can_go(block) || block->used) break;
      block->state = ABSENT;
      hand->here--;
      used--;
    }
    if (hand_at > from) punch(hand, from, hand_at - from);
    else hand->blocks[hand_at++].used = false;
  }
}

struct stat state_of_parts(struct parts *parts) {
  pthread_mutex_lock(&lock);
  struct stat status = parts->status;
  pthread_mutex_unlock(&lock);
  return status;
}

void note_parts(struct parts *parts, const struct stat *status) {
  pthread_mutex_lock(&lock);
  parts->status = *status;
  pthread_mutex_unlock(&lock);
}

static void renew(struct parts *parts, const struct stat *status) {
  // A file that never stands still is as it comes.
  bool forget = !parts->kept || parts->versions_left > 0;
  if (parts->kept && parts->versions_left > 0) parts->versions_left--;
  size_t before = parts->count;
  set_size(parts, status->st_size);
  for (size_t i = 0; i < before; i++)
    if (parts->blocks[i].state == HERE && (forget || i >= parts->count)) {
      parts->blocks[i].state = ABSENT;
      parts->here--;
      used--;
    }
  if (forget) parts->version++;
  int fd = reopen(parts->object, O_WRONLY);
  if (fd >= 0 && ftruncate(fd, status->st_size)) warn("%s: %s", parts->object->path, strerror(errno));
  if (fd >= 0) close(fd);
  parts->status = *status;
  finish_if_whole(parts);
}

void renew_parts(struct parts *parts, const struct stat *status) {
  pthread_mutex_lock(&lock);
  if (!parts->whole) renew(parts, status);
  pthread_mutex_unlock(&lock);
}

static size_t mark_coming(struct parts *parts, size_t first, size_t end) {
  size_t count = 0;
  while (first + count < end && count < PER_REQUEST && parts->blocks[first + count].state == ABSENT)
    parts->blocks[first + count++].state = COMING;
  make_room(count);
  used += count;
  return count;
}

static int put_run(const struct parts *parts, const uint8_t *bytes, size_t length, off_t at) {
  int fd = reopen(parts->object, O_WRONLY);
  if (fd < 0) return -errno;
  int error = store(fd, bytes, length, at);
  close(fd);
  return error;
}

static bool same_parts(const struct parts *parts, const struct stat *found) {
  const struct stat *known = &parts->status;
  return found->st_size == known->st_size && found->st_mtim.tv_sec == known->st_mtim.tv_sec &&
         found->st_mtim.tv_nsec == known->st_mtim.tv_nsec;
}

// Without the lock: brings blocks that were marked as coming.
static int fetch_run(struct parts *parts, size_t first, size_t count, unsigned version) {
  off_t at = (off_t)first * BLOCK;
  struct answer answer = ask(
      &(struct request){.call = HOME_READ, .words = {parts->object->path}, .numbers = {at, (int64_t)(count * BLOCK)}});
  int error = answer.result < 0 ? (int)answer.result : 0;
  struct stat found;
  if (!error && (!read_status(answer.bytes, answer.length, &found) || answer.length - STATUS_BYTES > count * BLOCK)) error = -EIO;
  size_t got = error ? 0 : answer.length - STATUS_BYTES;
  // It was removed at home, or another stands in its place.
  if (error == -ENOENT || (!error && found.st_ino != parts->object->status.st_ino)) error = -ESTALE;
  pthread_mutex_lock(&lock);
  if (!error && !same_parts(parts, &found)) {
    renew(parts, &found);
    // What came is of the newest content.
    version = parts->version;
  }
  size_t end = first + count < parts->count ? first + count : parts->count;
  bool good = !error && version == parts->version && first < end;
  if (good && at + (off_t)got < (off_t)(end * BLOCK) && at + (off_t)got < parts->status.st_size) error = -EIO;
  pthread_mutex_unlock(&lock);
  if (good && !error) error = put_run(parts, answer.bytes + STATUS_BYTES, got, at);
  free(answer.bytes);
  pthread_mutex_lock(&lock);
  for (size_t i = first; i < first + count; i++) {
    bool here = good && !error && version == parts->version && i < parts->count;
    parts->blocks[i].state = here ? HERE : ABSENT;
    parts->blocks[i].used = true;
    if (here) parts->here++;
    else used--;
  }
  finish_if_whole(parts);
  pthread_cond_broadcast(&came);
  pthread_mutex_unlock(&lock);
  return error;
}

static void *run_ahead(void *nothing) {
  for (;;) {
    pthread_mutex_lock(&lock);
    while (!first_run) pthread_cond_wait(&wanted, &lock);
    struct run *run = first_run;
    first_run = run->next;
    if (!first_run) last_run = &first_run;
    pthread_mutex_unlock(&lock);
    // If it fails, whoever reads it asks again, and hears why.
    fetch_run(run->parts, run->first, run->count, run->version);
    free(run);
  }
  return nothing;
}

static void start_runners(void) {
  static int started;
  pthread_t thread;
  for (; started < AT_ONCE && pthread_create(&thread, NULL, run_ahead, NULL) == 0; started++) pthread_detach(thread);
}

// Reads in sequence: twice as far ahead each time.
static void look_ahead(struct parts *parts, size_t first, size_t end) {
  // The same block again says nothing.
  if (end == parts->next) return;
  bool in_sequence = first <= parts->next && parts->next < end;
  parts->next = end;
  if (!in_sequence) {
    parts->ahead = 0;
    return;
  }
  parts->ahead = parts->ahead == 0 ? 4 : parts->ahead >= MOST_AHEAD ? MOST_AHEAD : parts->ahead * 2;
  size_t until = end + parts->ahead < parts->count ? end + parts->ahead : parts->count;
  size_t half = end + parts->ahead / 2;
  if (until <= end) return;
  // Half of it is on its way still.
  if (parts->blocks[half < until ? half : until - 1].state != ABSENT) return;
  for (size_t at = end; at < until;) {
    size_t count = mark_coming(parts, at, until);
    if (count > 0) {
      struct run *run = allocate(sizeof *run);
      *run = (struct run){.parts = parts, .first = at, .count = count, .version = parts->version};
      *last_run = run;
      last_run = &run->next;
      pthread_cond_signal(&wanted);
      start_runners();
    }
    at += count > 0 ? count : 1;
  }
}

int hold_range(struct parts *parts, off_t at, size_t length, bool wait) {
  size_t first = at / BLOCK, last = (at + length - 1) / BLOCK;
  int error = 0;
  pthread_mutex_lock(&lock);
  if (wait) look_ahead(parts, first, last + 1);
  for (size_t i = first; i <= last && i < parts->count;) {
    struct block *block = &parts->blocks[i];
    if (block->state == HERE) {
      i++;
      continue;
    }
    if (!wait) error = -EAGAIN;
    if (error) break;
    if (block->state == COMING) {
      pthread_cond_wait(&came, &lock);
    } else {
      size_t count = mark_coming(parts, i, last + 1 < parts->count ? last + 1 : parts->count);
      unsigned version = parts->version;
      pthread_mutex_unlock(&lock);
      error = fetch_run(parts, i, count, version);
      pthread_mutex_lock(&lock);
    }
    // Meanwhile what was here may have gone.
    i = first;
  }
  if (!error) {
    for (size_t i = first; i <= last && i < parts->capacity; i++) {
      parts->blocks[i].readers++;
      parts->blocks[i].used = true;
    }
    if (!wait) look_ahead(parts, first, last + 1);
  }
  pthread_mutex_unlock(&lock);
  return error;
}

void release_range(struct parts *parts, off_t at, size_t length) {
  pthread_mutex_lock(&lock);
  for (size_t i = at / BLOCK; i <= (at + length - 1) / BLOCK && i < parts->capacity; i++)
    if (parts->blocks[i].readers > 0) parts->blocks[i].readers--;
  pthread_mutex_unlock(&lock);
}

struct completing {
  struct parts *parts;
  atomic_int error;
};

static void *bring_some(void *given) {
  struct completing *work = given;
  struct parts *parts = work->parts;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; !parts->whole && work->error == 0;) {
    while (i < parts->count && parts->blocks[i].state != ABSENT) i++;
    if (i < parts->count) {
      size_t count = mark_coming(parts, i, parts->count);
      unsigned version = parts->version;
      pthread_mutex_unlock(&lock);
      int error = fetch_run(parts, i, count, version);
      pthread_mutex_lock(&lock);
      if (error) work->error = error;
      if (version != parts->version) i = 0;
    } else if (parts->here < parts->count) {
      // Others bring the rest, or fail to.
      pthread_cond_wait(&came, &lock);
      i = 0;
    } else {
      finish_if_whole(parts);
    }
  }
  pthread_cond_broadcast(&came);
  pthread_mutex_unlock(&lock);
  return NULL;
}

int bring_missing(struct parts *parts) {
  struct completing work = {.parts = parts};
  pthread_mutex_lock(&lock);
  parts->kept = true;
  pthread_mutex_unlock(&lock);
  pthread_t others[AT_ONCE - 1];
  int started = 0;
  while (started < AT_ONCE - 1 && pthread_create(&others[started], NULL, bring_some, &work) == 0) started++;
  bring_some(&work);
  for (int i = 0; i < started; i++) pthread_join(others[i], NULL);
  if (parts->whole) return 0;
  pthread_mutex_lock(&lock);
  parts->kept = false;
  pthread_mutex_unlock(&lock);
  return work.error;
}
