#include "filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "say.h"
#include "target.h"

#if defined(__x86_64__)
#define OURS AUDIT_ARCH_X86_64
// Calls of x32 have this bit. They are another architecture's.
#define OTHERS 0x40000000
#elif defined(__aarch64__)
#define OURS AUDIT_ARCH_AARCH64
#define OTHERS 0x7fffffff
#else
#error "This architecture is not known."
#endif

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define LOAD(field) (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(compare, value, yes, no) (struct sock_filter)BPF_JUMP(BPF_JMP | compare | BPF_K, value, yes, no)
#define END(action) (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action)

struct program {
  struct sock_filter *code;
  size_t used;
};

static void add(struct program *to, struct sock_filter one) { to->code[to->used++] = one; }

// A call whose argument is a descriptor of a file with missing parts.
static void add_partial(struct program *to, int number, int argument, uint32_t action, struct sock_filter otherwise) {
  add(to, IF(BPF_JEQ, (uint32_t)number, 0, 5));
  add(to, LOAD(args[argument]));
  add(to, IF(BPF_JGE, FIRST_PARTIAL, 0, 2));
  add(to, IF(BPF_JGE, END_PARTIAL, 1, 0));
  add(to, END(action));
  add(to, otherwise);
}

static void add_ioctl(struct program *to) {
  add(to, IF(BPF_JEQ, SYS_ioctl, 0, 8));
  add(to, LOAD(args[1]));
  add(to, IF(BPF_JEQ, FICLONE, 4, 0));
  add(to, IF(BPF_JEQ, FICLONERANGE, 3, 0));
  add(to, LOAD(args[0]));
  add(to, IF(BPF_JGE, FIRST_PARTIAL, 0, 2));
  add(to, IF(BPF_JGE, END_PARTIAL, 1, 0));
  add(to, END(SECCOMP_RET_USER_NOTIF));
  add(to, END(SECCOMP_RET_ALLOW));
}

// A call by which the kernel moves the bytes itself: programs then read and write.
static const struct {
  int number, argument, error;
} MOVES[] = {
    {SYS_sendfile, 0, EINVAL},        {SYS_sendfile, 1, EINVAL},        {SYS_splice, 0, EINVAL},      {SYS_splice, 2, EINVAL},
    {SYS_copy_file_range, 0, EINVAL}, {SYS_copy_file_range, 2, EINVAL}, {SYS_pidfd_getfd, 1, EPERM},
};

// The calls of 32-bit processes by which they could read or pass on such a descriptor that they were given. i386 and ARM have
// the same numbers: read, dup, fcntl, dup2, readv, pread64, sendfile, mmap2, fcntl64, sendfile64, dup3.
static const struct {
  int number, argument;
} OF_32_BITS[] = {{3, 0}, {41, 0}, {55, 0}, {63, 0}, {145, 0}, {180, 0}, {187, 1}, {192, 4}, {221, 0}, {239, 1}, {330, 0}};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void write_program(struct program *to) {
  const struct sock_filter allow = END(SECCOMP_RET_ALLOW), number = LOAD(nr);
  add(to, LOAD(arch));
  add(to, IF(BPF_JEQ, OURS, 0, 1));
  add(to, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 6 * COUNT(OF_32_BITS) + 2));
  add(to, number);
  for (size_t i = 0; i < COUNT(OF_32_BITS); i++)
    add_partial(to, OF_32_BITS[i].number, OF_32_BITS[i].argument, SECCOMP_RET_ERRNO | EBADF, allow);
  add(to, allow);
  add(to, number);
  add(to, IF(BPF_JGE, OTHERS, 0, 1));
  add(to, allow);
  // Reads and writes are the most frequent.
  for (size_t i = 0; i < LOOKED_AT_COUNT; i++)
    if (LOOKED_AT[i].partial)
      add_partial(to, LOOKED_AT[i].number, LOOKED_AT[i].directory, SECCOMP_RET_USER_NOTIF, allow);
  add_ioctl(to);
  for (size_t i = 0; i < LOOKED_AT_COUNT; i++) {
    if (LOOKED_AT[i].partial || LOOKED_AT[i].number == SYS_ioctl) continue;
    add(to, IF(BPF_JEQ, (uint32_t)LOOKED_AT[i].number, 0, 1));
    add(to, END(SECCOMP_RET_USER_NOTIF));
  }
  // Its calls would not be seen. Programs do without it.
  add(to, IF(BPF_JEQ, SYS_io_uring_setup, 0, 1));
  add(to, END(SECCOMP_RET_ERRNO | ENOSYS));
  for (size_t i = 0; i < COUNT(MOVES); i++)
    add_partial(to, MOVES[i].number, MOVES[i].argument, SECCOMP_RET_ERRNO | MOVES[i].error, number);
  add(to, allow);
}

int install_filter(void) {
  struct program made = {.code = allocate((LOOKED_AT_COUNT + COUNT(MOVES) + COUNT(OF_32_BITS) + 8) * 6 * sizeof *made.code)};
  write_program(&made);
  struct sock_fprog program = {made.used, made.code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
  // A signal must not interrupt what home is doing already (Linux 5.19).
  int fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
  if (fd < 0 && errno == EINVAL)
    fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  free(made.code);
  return fd;
}

const char *why_no_filter(int error) {
  switch (error) {
    case EBUSY:
      return "a seccomp filter with a listener of its own stands already, as in some containers";
    case ENOSYS:
    case EINVAL:
      return "the kernel has no seccomp user notification (Linux 5.9 or later has)";
    default:
      return "seccomp filters may not be installed here, as in some containers";
  }
}

void hand_over(int socket, int fd) {
  char taken;
  // Messages with descriptors are stopped already.
  if (write(socket, &fd, sizeof fd) == sizeof fd && read(socket, &taken, 1) < 0) _exit(errno);
}

int take_over(int socket, pid_t from) {
  int fd;
  if (read(socket, &fd, sizeof fd) != sizeof fd) {
    errno = 0;
    return -1;
  }
  int taken = take_descriptor(from, fd), error = errno;
  if (write(socket, "", 1) < 0) error = errno;
  errno = error;
  return taken;
}
