// What programs change about files and names.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <utime.h>

#include "attributes.h"
#include "calls.h"
#include "content.h"
#include "parts.h"
#include "say.h"
#include "target.h"
#include "wire.h"

// In the place of nanoseconds, as home understands them (src/site/remote-io.ts).
#define TIME_NOW (-1)
#define TIME_OMIT (-2)

// The file at a path, if what is new of it is here; it is written back first.
static struct object *written_back(const char *path, struct object *object, int *error) {
  *error = 0;
  settle();
  if (!has_written()) return object;
  struct stat status;
  if (!object && attributes(path, false, &status) == 0) object = known_object(&status);
  if (!object || object->directory) return object;
  pthread_mutex_lock(&object->lock);
  *error = write_back(object);
  pthread_mutex_unlock(&object->lock);
  return object;
}

// A file that is about to lose its name is brought whole, if somebody reads it.
static int keep_content(const char *path) {
  struct stat status;
  if (!has_parts() || attributes(path, false, &status)) return 0;
  struct object *object = known_object(&status);
  if (!object || !parts_of(object) || !in_use(object)) return 0;
  pthread_mutex_lock(&object->lock);
  int error = make_ordinary(object);
  pthread_mutex_unlock(&object->lock);
  return error;
}

int64_t change_at_home(const char *path, const char *second, int call, const int64_t numbers[4]) {
  struct request request = {.call = call, .words = {path, second}};
  if (numbers) memcpy(request.numbers, numbers, sizeof request.numbers);
  struct answer answer = ask(&request);
  struct stat status;
  if (answer.result >= 0 && read_status(answer.bytes, answer.length, &status)) {
    struct object *object = known_object(&status);
    if (object) {
      pthread_mutex_lock(&object->lock);
      // Whether its content is still the one that is here.
      bool same = status.st_size == object->status.st_size &&
                  (call == HOME_UTIMENS || (status.st_mtim.tv_sec == object->status.st_mtim.tv_sec &&
                                            status.st_mtim.tv_nsec == object->status.st_mtim.tv_nsec));
      struct parts *parts = parts_of(object);
      if (same || object->written) object->status = status;
      if (parts && same) note_parts(parts, &status);
      else if (parts) renew_parts(parts, &status);
      pthread_mutex_unlock(&object->lock);
    }
    note_status(path, &status);
  }
  free(answer.bytes);
  return answer.result;
}

struct outcome do_unlink(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  int error;
  bool directory = call->number == SYS_unlinkat && call->args[2] & AT_REMOVEDIR;
#ifdef SYS_rmdir
  directory = directory || call->number == SYS_rmdir;
#endif
  written_back(one->path, NULL, &error);
  if (!directory && (error = keep_content(one->path))) return value(error);
  int64_t result = ask_result(&(struct request){.call = directory ? HOME_RMDIR : HOME_UNLINK, .words = {one->path}});
  if (result >= 0) {
    objects_removed(one->path);
    forget_name(one->path);
    note_absence(one->path);
  }
  return value(result);
}

struct outcome do_mkdir(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  mode_t mode = call->args[call->number == SYS_mkdirat ? 2 : 1] & 0777 & ~umask_of(call->tid);
  forget_name(one->path);
  return value(change_at_home(one->path, NULL, HOME_MKDIR, (int64_t[4]){mode}));
}

struct outcome do_rename(const struct call *call, const struct operand *one, const struct operand *two) {
  if (!one->path || !two->path) return value(-EXDEV);
  if (call->number == SYS_renameat2 && call->args[4] & ~1u) return value(-EINVAL);
  int64_t no_replace = call->number == SYS_renameat2 ? (int64_t)(call->args[4] & 1) : 0;
  int error;
  struct stat status;
  written_back(one->path, NULL, &error);
  if (!error) error = keep_content(two->path);
  if (error) return value(error);
  bool file = attributes(one->path, false, &status) == 0 && !S_ISDIR(status.st_mode);
  int64_t result = ask_result(
      &(struct request){.call = HOME_RENAME, .words = {one->path, two->path}, .numbers = {no_replace}});
  if (result < 0) return value(result);
  objects_moved(one->path, two->path);
  if (!file) forget_all();
  forget_name(one->path);
  forget_name(two->path);
  note_absence(one->path);
  return value(0);
}

struct outcome do_link(const struct call *call, const struct operand *one, const struct operand *two) {
  if (!one->path || !two->path) return value(-EXDEV);
  int error;
  int64_t follow = call->number == SYS_linkat ? (call->args[4] & AT_SYMLINK_FOLLOW) != 0 : 0;
  written_back(one->path, NULL, &error);
  if (error) return value(error);
  int64_t result =
      ask_result(&(struct request){.call = HOME_LINK, .words = {one->path, two->path}, .numbers = {follow}});
  forget_name(one->path);
  forget_name(two->path);
  return value(result);
}

struct outcome do_symlink(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  char *target = read_text(call->tid, call->args[0]);
  if (!target) return value(-errno);
  int64_t result = ask_result(&(struct request){.call = HOME_SYMLINK, .words = {target, one->path}});
  free(target);
  forget_name(one->path);
  return value(result);
}

struct outcome do_chmod(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  bool at = call->number == SYS_fchmodat || call->number == SYS_fchmodat2;
  int error;
  written_back(one->path, one->object, &error);
  if (error) return value(error);
  return value(change_at_home(one->path, NULL, HOME_CHMOD, (int64_t[4]){call->args[at ? 2 : 1]}));
}

struct outcome do_chown(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  bool at = call->number == SYS_fchownat;
  int64_t uid = (int)call->args[at ? 2 : 1], gid = (int)call->args[at ? 3 : 2];
  bool follow = !(at && call->args[4] & AT_SYMLINK_NOFOLLOW);
#ifdef SYS_lchown
  if (call->number == SYS_lchown) follow = false;
#endif
  return value(change_at_home(one->path, NULL, HOME_CHOWN, (int64_t[4]){uid, gid, follow}));
}

static int64_t nanoseconds(struct timespec time) {
  return time.tv_nsec == UTIME_NOW ? TIME_NOW : time.tv_nsec == UTIME_OMIT ? TIME_OMIT : time.tv_nsec;
}

// The two times of each of these calls; false if they cannot be read.
static bool times_of(const struct call *call, struct timespec times[2]) {
  times[0] = times[1] = (struct timespec){.tv_nsec = UTIME_NOW};
  if (call->number == SYS_utimensat)
    return call->args[2] == 0 || read_memory(call->tid, call->args[2], times, 2 * sizeof *times);
#ifdef SYS_utime
  if (call->number == SYS_utime) {
    struct utimbuf both;
    if (call->args[1] == 0) return true;
    if (!read_memory(call->tid, call->args[1], &both, sizeof both)) return false;
    times[0] = (struct timespec){.tv_sec = both.actime};
    times[1] = (struct timespec){.tv_sec = both.modtime};
    return true;
  }
  struct timeval both[2];
  uint64_t from = call->args[call->number == SYS_futimesat ? 2 : 1];
  if (from == 0) return true;
  if (!read_memory(call->tid, from, both, sizeof both)) return false;
  for (int i = 0; i < 2; i++)
    times[i] = (struct timespec){.tv_sec = both[i].tv_sec, .tv_nsec = both[i].tv_usec * 1000};
#endif
  return true;
}

struct outcome do_times(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  struct timespec times[2];
  int error;
  if (!times_of(call, times)) return value(-EFAULT);
  // What is written back later would change the time again.
  written_back(one->path, one->object, &error);
  if (error) return value(error);
  char follow[] = "1";
  if (call->number == SYS_utimensat && call->args[3] & AT_SYMLINK_NOFOLLOW) *follow = '0';
  int64_t numbers[] = {times[0].tv_sec, nanoseconds(times[0]), times[1].tv_sec, nanoseconds(times[1])};
  return value(change_at_home(one->path, follow, HOME_UTIMENS, numbers));
}

struct outcome do_truncate(const struct call *call, const struct operand *one, const struct operand *two) {
  (void)two;
  int error;
  struct object *object = written_back(one->path, one->object, &error);
  if (error) return value(error);
  int64_t result = change_at_home(one->path, NULL, HOME_TRUNCATE, (int64_t[4]){(int64_t)call->args[1]});
  if (result >= 0 && object && object->written) {
    pthread_mutex_lock(&object->lock);
    result = shortened(object, (off_t)call->args[1]);
    pthread_mutex_unlock(&object->lock);
  } else if (result >= 0 && object) {
    object->whole = false;
  }
  return value(result);
}
