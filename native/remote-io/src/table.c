#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "calls.h"
#include "cwd.h"
#include "paths.h"
#include "target.h"

#define ONE(name, path, answer) {SYS_##name, -1, path, -1, -1, -1, answer, false}
#define AT(name, directory, path, answer) {SYS_##name, directory, path, -1, -1, -1, answer, false}
#define AT_EMPTY(name, directory, path, empty, answer) {SYS_##name, directory, path, -1, -1, empty, answer, false}
#define BY_FD(name, answer) {SYS_##name, 0, -1, -1, -1, -1, answer, false}
#define PARTIAL(name, descriptor, answer) {SYS_##name, descriptor, -1, -1, -1, -1, answer, true}
#define NAMELESS(name, answer) {SYS_##name, -1, -1, -1, -1, -1, answer, false}

const struct looked_at LOOKED_AT[] = {
    AT(openat, 0, 1, do_open),
    AT(openat2, 0, 1, do_open),
    AT_EMPTY(newfstatat, 0, 1, 3, do_status),
    AT_EMPTY(statx, 0, 1, 2, do_status),
    BY_FD(fstat, do_status),
    AT(faccessat, 0, 1, do_access),
    AT_EMPTY(faccessat2, 0, 1, 3, do_access),
    AT(readlinkat, 0, 1, do_readlink),
    AT(unlinkat, 0, 1, do_unlink),
    AT(mkdirat, 0, 1, do_mkdir),
    AT(mknodat, 0, 1, do_node),
    {SYS_renameat2, 0, 1, 2, 3, -1, do_rename, false},
    {SYS_linkat, 0, 1, 2, 3, 4, do_link, false},
    AT(symlinkat, 1, 2, do_symlink),
    BY_FD(fchmod, do_chmod),
    AT(fchmodat, 0, 1, do_chmod),
    AT_EMPTY(fchmodat2, 0, 1, 3, do_chmod),
    BY_FD(fchown, do_chown),
    AT_EMPTY(fchownat, 0, 1, 4, do_chown),
    AT_EMPTY(utimensat, 0, 1, 3, do_times),
    ONE(truncate, 0, do_truncate),
    ONE(chdir, 0, do_chdir),
    BY_FD(fchdir, do_chdir),
    NAMELESS(getcwd, do_getcwd),
    BY_FD(getdents64, do_entries),
    BY_FD(close, do_close),
    BY_FD(fsync, do_sync),
    BY_FD(fdatasync, do_sync),
    ONE(statfs, 0, do_space),
    ONE(getxattr, 0, do_attribute),
    ONE(lgetxattr, 0, do_attribute),
    ONE(setxattr, 0, do_attribute),
    ONE(lsetxattr, 0, do_attribute),
    ONE(listxattr, 0, do_attribute),
    ONE(llistxattr, 0, do_attribute),
    ONE(removexattr, 0, do_attribute),
    ONE(lremovexattr, 0, do_attribute),
    PARTIAL(read, 0, do_read),
    PARTIAL(pread64, 0, do_read),
    PARTIAL(readv, 0, do_read),
    PARTIAL(preadv, 0, do_read),
    PARTIAL(preadv2, 0, do_read),
    PARTIAL(lseek, 0, do_seek),
    PARTIAL(write, 0, do_change),
    PARTIAL(pwrite64, 0, do_change),
    PARTIAL(writev, 0, do_change),
    PARTIAL(pwritev, 0, do_change),
    PARTIAL(pwritev2, 0, do_change),
    PARTIAL(ftruncate, 0, do_change),
    PARTIAL(fallocate, 0, do_change),
    PARTIAL(mmap, 4, do_map),
    PARTIAL(dup, 0, do_duplicate),
    PARTIAL(dup3, 0, do_duplicate),
    PARTIAL(fcntl, 0, do_control),
    NAMELESS(ioctl, do_device),
    NAMELESS(sendmsg, do_send),
    NAMELESS(sendmmsg, do_send),
    NAMELESS(io_setup, do_own_reads),
#ifdef SYS_renameat
    {SYS_renameat, 0, 1, 2, 3, -1, do_rename, false},
#endif
#ifdef SYS_open
    PARTIAL(dup2, 0, do_duplicate),
    ONE(open, 0, do_open),
    ONE(creat, 0, do_open),
    ONE(stat, 0, do_status),
    ONE(lstat, 0, do_status),
    ONE(access, 0, do_access),
    ONE(readlink, 0, do_readlink),
    ONE(unlink, 0, do_unlink),
    ONE(rmdir, 0, do_unlink),
    ONE(mkdir, 0, do_mkdir),
    ONE(mknod, 0, do_node),
    {SYS_rename, -1, 0, -1, 1, -1, do_rename, false},
    {SYS_link, -1, 0, -1, 1, -1, do_link, false},
    ONE(symlink, 1, do_symlink),
    ONE(chmod, 0, do_chmod),
    ONE(chown, 0, do_chown),
    ONE(lchown, 0, do_chown),
    ONE(utime, 0, do_times),
    ONE(utimes, 0, do_times),
    AT(futimesat, 0, 1, do_times),
#endif
};
const size_t LOOKED_AT_COUNT = sizeof LOOKED_AT / sizeof *LOOKED_AT;

const struct looked_at *looked_at(int number) {
  for (size_t i = 0; i < LOOKED_AT_COUNT; i++)
    if (LOOKED_AT[i].number == number) return &LOOKED_AT[i];
  return NULL;
}

static enum whose by_descriptor(const struct call *call, int fd, struct operand *found) {
  found->object = opened_object(call->tid, fd, &found->number);
  if (!found->object) return THIS_MACHINES;
  found->path = strdup(found->object->path);
  return HOMES;
}

static enum whose by_path(const struct call *call, int directory, int path, int empty, bool opens, struct operand *found) {
  int at = directory < 0 ? AT_FDCWD : (int)call->args[directory];
  if (call->args[path] == 0) return directory < 0 ? THIS_MACHINES : by_descriptor(call, at, found);
  char *text = read_text(call->tid, call->args[path]);
  // The kernel says what is wrong with it.
  if (!text) return THIS_MACHINES;
  enum whose whose = THIS_MACHINES;
  if (*text == 0) {
    if (empty >= 0 && call->args[empty] & AT_EMPTY_PATH) whose = by_descriptor(call, at, found);
  } else if (*text == '/') {
    char *whole = normal_path("/", text);
    if (is_home(whole)) {
      found->path = whole;
      whose = HOMES;
    } else {
      free(whole);
    }
  } else {
    struct object *base = at == AT_FDCWD ? NULL : opened_object(call->tid, at, NULL);
    char *from = at == AT_FDCWD ? cwd_of(call->tid) : base && base->directory ? strdup(base->path) : NULL;
    if (from) {
      found->path = normal_path(from, text);
      whose = is_home(found->path) ? HOMES : REFUSED;
      free(from);
    }
  }
  if (whose == THIS_MACHINES && opens && (found->object = partial_by_proc(call->tid, text))) whose = HOMES;
  free(text);
  return whose;
}

enum whose operands_of(const struct call *call, const struct looked_at *how, struct operand *one, struct operand *two) {
  enum whose first = THIS_MACHINES, second = THIS_MACHINES;
  if (how->path >= 0) first = by_path(call, how->directory, how->path, how->empty, how->answer == do_open, one);
  else if (how->directory >= 0) first = by_descriptor(call, (int)call->args[how->directory], one);
  if (how->path2 >= 0) second = by_path(call, how->directory2, how->path2, -1, false, two);
  return first == REFUSED || second == REFUSED ? REFUSED : first == HOMES || second == HOMES ? HOMES : THIS_MACHINES;
}

void free_operands(struct operand *one, struct operand *two) {
  free(one->path);
  free(two->path);
}

struct outcome value(int64_t result) { return (struct outcome){.kind = VALUE, .value = result}; }
struct outcome as_it_is(void) { return (struct outcome){.kind = AS_IT_IS}; }
