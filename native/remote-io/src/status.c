// What programs ask about files.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attributes.h"
#include "calls.h"
#include "content.h"
#include "cwd.h"
#include "parts.h"
#include "paths.h"
#include "target.h"
#include "wire.h"

static int status_of(const struct operand *one, bool follow, struct stat *status) {
  struct object *object = one->object;
  if (object && !object->directory) {
    pthread_mutex_lock(&object->lock);
    struct parts *parts = parts_of(object);
    *status = parts ? state_of_parts(parts) : object->status;
    overlay(object, status);
    pthread_mutex_unlock(&object->lock);
    return 0;
  }
  int error = attributes(one->path, follow, status);
  object = error || !has_written() ? NULL : known_object(status);
  if (object) overlay(object, status);
  return error;
}

static struct statx_timestamp timestamp(struct timespec time) {
  return (struct statx_timestamp){.tv_sec = time.tv_sec, .tv_nsec = time.tv_nsec};
}

static struct statx extended(const struct stat *status) {
  return (struct statx){
      .stx_mask = STATX_BASIC_STATS,
      .stx_blksize = status->st_blksize,
      .stx_nlink = status->st_nlink,
      .stx_uid = status->st_uid,
      .stx_gid = status->st_gid,
      .stx_mode = status->st_mode,
      .stx_ino = status->st_ino,
      .stx_size = status->st_size,
      .stx_blocks = status->st_blocks,
      .stx_atime = timestamp(status->st_atim),
      .stx_ctime = timestamp(status->st_ctim),
      .stx_mtime = timestamp(status->st_mtim),
      .stx_rdev_major = major(status->st_rdev),
      .stx_rdev_minor = minor(status->st_rdev),
      .stx_dev_major = major(status->st_dev),
      .stx_dev_minor = minor(status->st_dev),
  };
}

// Where the answer goes, and whether a link at the end is followed.
static uint64_t wanted(const struct call *call, bool *follow) {
  *follow = true;
#ifdef SYS_lstat
  if (call->number == SYS_lstat) *follow = false;
#endif
  if (call->number == SYS_statx) *follow = !(call->args[2] & AT_SYMLINK_NOFOLLOW);
  if (call->number == SYS_newfstatat) *follow = !(call->args[3] & AT_SYMLINK_NOFOLLOW);
  return call->args[call->number == SYS_statx ? 4 : call->number == SYS_newfstatat ? 2 : 1];
}

// Home sets times to whole microseconds, so none that is seen is finer: a copy with its original's time is not older.
static struct timespec in_microseconds(struct timespec time) {
  time.tv_nsec = (time.tv_nsec + 999) / 1000 * 1000;
  if (time.tv_nsec == 1000000000) return (struct timespec){.tv_sec = time.tv_sec + 1};
  return time;
}

static struct outcome tell_status(const struct call *call, uint64_t to, const struct stat *status) {
  struct stat told = *status;
  told.st_atim = in_microseconds(status->st_atim);
  told.st_mtim = in_microseconds(status->st_mtim);
  told.st_ctim = in_microseconds(status->st_ctim);
  if (call->number == SYS_statx) {
    struct statx more = extended(&told);
    return value(write_memory(call->tid, to, &more, sizeof more) ? 0 : -EFAULT);
  }
  return value(write_memory(call->tid, to, &told, sizeof told) ? 0 : -EFAULT);
}

struct outcome do_status(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  struct stat status;
  bool follow;
  uint64_t to = wanted(call, &follow);
  int error = status_of(one, follow, &status);
  return error ? value(error) : tell_status(call, to, &status);
}

bool status_now(const struct call *call, const struct operand *one, struct outcome *outcome) {
  struct stat status;
  bool follow;
  if (one->object || has_written()) return false;
  uint64_t to = wanted(call, &follow);
  int error = believed_attributes(one->path, follow, &status);
  if (error == -EAGAIN) return false;
  *outcome = error ? value(error) : tell_status(call, to, &status);
  return true;
}

struct outcome do_access(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  bool at = call->number == SYS_faccessat || call->number == SYS_faccessat2;
  int mode = call->args[at ? 2 : 1];
  if (mode == F_OK) {
    struct stat status;
    return value(attributes(one->path, true, &status));
  }
  return value(ask_result(&(struct request){.call = HOME_ACCESS, .words = {one->path}, .numbers = {mode}}));
}

struct outcome do_readlink(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  int first = call->number == SYS_readlinkat ? 2 : 1;
  int64_t room = (int)call->args[first + 1];
  if (room <= 0) return value(-EINVAL);
  struct stat status;
  int error = attributes(one->path, false, &status);
  if (error) return value(error);
  if (!S_ISLNK(status.st_mode)) return value(-EINVAL);
  struct answer answer = ask(&(struct request){.call = HOME_READLINK, .words = {one->path}});
  int64_t result = answer.result;
  if (result >= 0) {
    size_t length = (int64_t)answer.length < room ? answer.length : (size_t)room;
    result = write_memory(call->tid, call->args[first], answer.bytes, length) ? (int64_t)length : -EFAULT;
  }
  free(answer.bytes);
  return value(result);
}

// What is free at home is not what a program has here: its writes go through the cache.
struct outcome do_space(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  struct stat status;
  int error = attributes(one->path, true, &status);
  struct statfs space;
  if (error) return value(error);
  if (statfs(".", &space)) return value(-errno);
  return value(write_memory(call->tid, call->args[1], &space, sizeof space) ? 0 : -EFAULT);
}

struct outcome do_attribute(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)call;
  (void)one;
  (void)two;
  return value(-EOPNOTSUPP);
}

struct outcome do_node(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)call;
  (void)one;
  (void)two;
  return value(-EPERM);
}

struct outcome do_chdir(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  struct stat status;
  int error = one->object && one->object->directory ? 0 : attributes(one->path, true, &status);
  if (!error && !one->object && !S_ISDIR(status.st_mode)) error = -ENOTDIR;
  if (!error && one->object && !one->object->directory) error = -ENOTDIR;
  if (!error) error = (int)ask_result(&(struct request){.call = HOME_ACCESS, .words = {one->path}, .numbers = {X_OK}});
  if (!error) set_cwd(call->tid, one->path);
  return value(error);
}

struct outcome do_getcwd(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)one;
  (void)two;
  char *path = cwd_of(call->tid);
  if (!path) return as_it_is();
  size_t length = strlen(path) + 1;
  int64_t result = length > call->args[1] ? -ERANGE : write_memory(call->tid, call->args[0], path, length) ? (int64_t)length : -EFAULT;
  free(path);
  return value(result);
}
