// Calls on descriptors of files of which parts may be missing (parts.h).
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "calls.h"
#include "content.h"
#include "parts.h"
#include "say.h"
#include "target.h"

#ifndef SEEK_DATA
#define SEEK_DATA 3
#endif
// As much as the kernel reads in one call.
#define MOST_READ 0x7ffff000
// Reads up to this size are answered without a change of threads.
#define SMALL (128 << 10)
// The longest control message that is looked at; bytes.
#define MOST_CONTROL (64 << 10)

static atomic_bool forbidden;

bool parts_allowed(void) { return !forbidden; }

// Whether the descriptor's file has missing parts: it may be an older one of the object.
static struct parts *lacks(const struct operand *one) {
  return one->object && !one->object->directory && one->object->number == one->number ? parts_of(one->object) : NULL;
}

// The same, or nobody has written to it yet, so that what home has is not kept.
static bool is_watched(const struct operand *one) {
  if (!one->object || one->object->directory || one->object->number != one->number) return false;
  return parts_of(one->object) || one->object->untouched;
}

static bool has_descriptor(pid_t tid, int fd) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", tid, fd);
  return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// Whoever has closed his standard descriptors means to get one of their numbers.
bool can_have_partial(pid_t tid) {
  for (int fd = 0; fd < 3; fd++)
    if (!has_descriptor(tid, fd)) return false;
  return !forbidden;
}

// Where a read goes to: a position in the process's buffers.
struct target {
  pid_t tid;
  struct iovec *parts;
  size_t count, at;  // `at`: in the first of them
};

static bool put(struct target *to, const uint8_t *bytes, size_t length) {
  while (length > 0 && to->count > 0) {
    size_t room = to->parts->iov_len - to->at, part = length < room ? length : room;
    if (part > 0 && !write_memory(to->tid, (uint64_t)(uintptr_t)to->parts->iov_base + to->at, bytes, part)) return false;
    bytes += part;
    length -= part;
    to->at += part;
    if (to->at == to->parts->iov_len) {
      to->parts++;
      to->count--;
      to->at = 0;
    }
  }
  return true;
}

static int64_t read_at(struct parts *parts, int fd, struct target *to, off_t at, size_t length, bool wait) {
  static _Thread_local uint8_t *buffer;
  if (!buffer) buffer = allocate(MOST_AT_ONCE);
  size_t done = 0;
  while (done < length) {
    off_t size = state_of_parts(parts).st_size;
    size_t part = MOST_AT_ONCE - at % BLOCK;
    if (part > length - done) part = length - done;
    if (at >= size) break;
    if ((off_t)part > size - at) part = size - at;
    int error = hold_range(parts, at, part, wait);
    if (error) return done > 0 && wait ? (int64_t)done : error;
    ssize_t got = pread(fd, buffer, part, at);
    error = got < 0 ? -errno : 0;
    release_range(parts, at, part);
    if (!error && !put(to, buffer, got)) error = -EFAULT;
    if (error) return done > 0 ? (int64_t)done : error;
    if (got == 0) break;
    done += got;
    at += got;
  }
  return (int64_t)done;
}

// The buffers of a read, with how much they take; NULL with the error.
static struct iovec *buffers_of(const struct call *call, size_t *count, size_t *length, int *error) {
  bool one = call->number == SYS_read || call->number == SYS_pread64;
  *count = one ? 1 : call->args[2];
  *error = *count > IOV_MAX ? -EINVAL : 0;
  if (*error) return NULL;
  struct iovec *parts = allocate((*count + 1) * sizeof *parts);
  if (one) *parts = (struct iovec){(void *)(uintptr_t)call->args[1], call->args[2]};
  else if (*count > 0 && !read_memory(call->tid, call->args[1], parts, *count * sizeof *parts)) *error = -EFAULT;
  *length = 0;
  for (size_t i = 0; !*error && i < *count; i++) {
    if ((int64_t)parts[i].iov_len < 0) *error = -EINVAL;
    size_t room = MOST_READ - *length;
    *length += parts[i].iov_len < room ? parts[i].iov_len : room;
  }
  if (!*error) return parts;
  free(parts);
  return NULL;
}

static int64_t read_into(const struct call *call, struct parts *parts, struct target *to, size_t length, bool wait) {
  bool moves = call->number == SYS_read || call->number == SYS_readv ||
               (call->number == SYS_preadv2 && (int64_t)call->args[3] == -1);
  int fd = take_descriptor(call->tid, (int)call->args[0]);
  if (fd < 0) return -errno;
  int64_t result = -EAGAIN;
  if (!moves) {
    off_t at = (off_t)call->args[3];
    result = at < 0 ? -EINVAL : read_at(parts, fd, to, at, length, wait);
  } else if (try_turn(parts) || (wait && (begin_turn(parts), true))) {
    off_t at = lseek(fd, 0, SEEK_CUR);
    result = read_at(parts, fd, to, at, length, wait);
    if (result > 0) lseek(fd, at + result, SEEK_SET);
    end_turn(parts);
  }
  close(fd);
  return result;
}

static struct outcome answer_read(const struct call *call, struct parts *parts, bool wait) {
  size_t count, length;
  int error;
  if (call->number == SYS_preadv2 && call->args[5] != 0) return value(-EOPNOTSUPP);
  struct iovec *buffers = buffers_of(call, &count, &length, &error);
  if (!buffers) return value(error);
  struct target to = {.tid = call->tid, .parts = buffers, .count = count};
  int64_t result = !wait && length > SMALL ? -EAGAIN : read_into(call, parts, &to, length, wait);
  free(buffers);
  return value(result);
}

struct outcome do_read(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  struct parts *parts = lacks(one);
  return parts ? answer_read(call, parts, true) : as_it_is();
}

bool read_now(const struct call *call, const struct operand *one, struct outcome *outcome) {
  struct parts *parts = lacks(one);
  *outcome = parts ? answer_read(call, parts, false) : as_it_is();
  return outcome->kind != VALUE || outcome->value != -EAGAIN;
}

// Data everywhere, and a hole behind the end: as on a file system that has no holes.
struct outcome do_seek(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  struct parts *parts = lacks(one);
  if (!parts || (int)call->args[2] < SEEK_DATA) return as_it_is();
  off_t at = (off_t)call->args[1], size = state_of_parts(parts).st_size;
  if (at < 0 || at >= size) return value(-ENXIO);
  int fd = take_descriptor(call->tid, (int)call->args[0]);
  if (fd < 0) return value(-errno);
  off_t to = lseek(fd, (int)call->args[2] == SEEK_DATA ? at : size, SEEK_SET);
  close(fd);
  return value(to);
}

static int become_whole(struct object *object) {
  pthread_mutex_lock(&object->lock);
  int error = make_ordinary(object);
  pthread_mutex_unlock(&object->lock);
  return error;
}

static struct outcome when_whole(struct object *object) {
  int error = become_whole(object);
  return error ? value(error) : as_it_is();
}

// Before the first change there must be all of it, and what home has to compare with.
struct outcome do_change(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)call;
  (void)two;
  return one->object->untouched ? when_whole(one->object) : as_it_is();
}

struct outcome do_map(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)call;
  (void)two;
  return is_watched(one) ? when_whole(one->object) : as_it_is();
}

static struct outcome another(const struct call *call, const struct operand *one, bool close_on_exec) {
  int fd = take_descriptor(call->tid, (int)call->args[0]);
  if (fd < 0) return value(-errno);
  return (struct outcome){.kind = DESCRIPTOR, .value = fd, .close_on_exec = close_on_exec, .partial = one->object};
}

// Under a number that the program chooses, its reads would not be seen.
struct outcome do_duplicate(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  if (!is_watched(one)) return as_it_is();
  if (call->number == SYS_dup && can_have_partial(call->tid)) return another(call, one, false);
  return when_whole(one->object);
}

struct outcome do_control(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  int what = (int)call->args[1];
  if (!is_watched(one) || (what != F_DUPFD && what != F_DUPFD_CLOEXEC)) return as_it_is();
  if ((int)call->args[2] > FIRST_PARTIAL || !can_have_partial(call->tid)) return when_whole(one->object);
  return another(call, one, what == F_DUPFD_CLOEXEC);
}

static bool is_partial(pid_t tid, int fd, struct operand *found) {
  found->object = opened_object(tid, fd, &found->number);
  return is_watched(found);
}

// Which parts of the file stand where on the disk is not the program's matter, and they are not to be shared.
struct outcome do_device(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)one;
  (void)two;
  struct operand file;
  unsigned what = (unsigned)call->args[1];
  int from = (int)call->args[0];
  if (what == FICLONE) from = (int)call->args[2];
  if (what == FICLONERANGE) {
    struct file_clone_range range;
    if (!read_memory(call->tid, call->args[2], &range, sizeof range)) return as_it_is();
    from = (int)range.src_fd;
  }
  bool looks = what == FICLONE || what == FICLONERANGE || what == FS_IOC_FIEMAP || what == FIBMAP || what == FIDEDUPERANGE;
  return looks && is_partial(call->tid, from, &file) ? value(-EOPNOTSUPP) : as_it_is();
}

static bool message_of(const struct call *call, size_t at, struct msghdr *message) {
  size_t each = call->number == SYS_sendmmsg ? sizeof(struct mmsghdr) : sizeof *message;
  return read_memory(call->tid, call->args[1] + at * each, message, sizeof *message);
}

static size_t messages_of(const struct call *call) {
  if (call->number != SYS_sendmmsg) return 1;
  return call->args[2] < IOV_MAX ? call->args[2] : IOV_MAX;
}

bool carries_descriptors(const struct call *call) {
  struct msghdr message;
  for (size_t i = 0; i < messages_of(call); i++)
    if (message_of(call, i, &message) && message.msg_control && message.msg_controllen > 0) return true;
  return false;
}

// Whoever gets a descriptor by a message has it under another number.
struct outcome do_send(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)one;
  (void)two;
  struct msghdr message;
  for (size_t i = 0; i < messages_of(call); i++) {
    if (!message_of(call, i, &message) || message.msg_controllen == 0 || message.msg_controllen > MOST_CONTROL) continue;
    uint8_t *control = allocate(message.msg_controllen);
    struct msghdr copy = {.msg_control = control, .msg_controllen = message.msg_controllen};
    int error = 0;
    if (read_memory(call->tid, (uint64_t)(uintptr_t)message.msg_control, control, message.msg_controllen))
      for (struct cmsghdr *head = CMSG_FIRSTHDR(&copy); head && !error; head = CMSG_NXTHDR(&copy, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS || head->cmsg_len < CMSG_LEN(0)) continue;
        size_t room = control + message.msg_controllen - CMSG_DATA(head), length = head->cmsg_len - CMSG_LEN(0);
        for (size_t j = 0; !error && j + sizeof(int) <= (length < room ? length : room); j += sizeof(int)) {
          int fd;
          struct operand file;
          memcpy(&fd, CMSG_DATA(head) + j, sizeof fd);
          if (is_partial(call->tid, fd, &file)) error = become_whole(file.object);
        }
      }
    free(control);
    if (error) return value(error);
  }
  return as_it_is();
}

static void become_whole_if_open(struct object *object) {
  if ((parts_of(object) || object->untouched) && in_use(object)) become_whole(object);
}

// The program's own queues of reads (io_setup(2)) are not seen: from now on all files are brought whole.
struct outcome do_own_reads(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)call;
  (void)one;
  (void)two;
  forbidden = true;
  each_file(become_whole_if_open);
  return as_it_is();
}

struct object *partial_by_proc(pid_t tid, const char *path) {
  if (!has_objects()) return NULL;
  const char *last = strrchr(path, '/');
  last = last ? last + 1 : path;
  char *end;
  long fd = strtol(last, &end, 10);
  if (end == last || *end || fd < 0 || fd >= END_PARTIAL) return NULL;
  int other;
  if (sscanf(path, "/proc/%d/", &other) == 1) tid = other;
  struct operand file;
  return is_partial(tid, (int)fd, &file) ? file.object : NULL;
}
