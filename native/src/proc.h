// What /proc tells of a process, without touching it.
#ifndef PROC_H
#define PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "image.h"

struct proc_map {
  uint64_t start, end, offset;
  char permissions[5];
  uint64_t inode;
  char *name;
};

struct proc_lock {
  enum lock_kind kind;  // 0: of no kind that can be carried
  bool writes;
  uint64_t start, length;  // as in the image
};

struct proc_fd {
  int fd;
  uint32_t flags;  // of open(2); O_CLOEXEC is the descriptor's own
  uint64_t position;
  struct proc_lock *locks;
  size_t lock_count;
  struct stat found;
  char *path;
};

struct proc_status {
  pid_t parent, inner_pid;  // inner: in the process's own pid namespace
  uint32_t umask;
  int seccomp, tracer, no_new_privileges;
};

struct proc_stat {
  char state;
  pid_t group, session;
  struct image_layout layout;  // without brk
};

// The text of /proc/PID/NAME; NULL if there is none.
char *proc_text(pid_t pid, const char *name);
// The target of the link /proc/PID/NAME; NULL if there is none.
char *proc_link(pid_t pid, const char *name);
bool proc_status(pid_t pid, struct proc_status *status);
bool proc_stat(pid_t pid, struct proc_stat *stat);
// The number of a process or thread in its own pid namespace.
pid_t inner_number(pid_t pid, pid_t tid);
struct proc_map *proc_maps(pid_t pid, size_t *count);
struct proc_fd *proc_fds(pid_t pid, size_t *count);
pid_t *proc_threads(pid_t pid, size_t *count);
pid_t *proc_children(pid_t pid, size_t *count);

#endif
