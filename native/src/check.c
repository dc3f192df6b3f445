#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "job.h"
#include "say.h"

void refuse(struct job *job, const struct found_process *process, const char *format, ...) {
  va_list list;
  char *what = NULL;
  va_start(list, format);
  if (vasprintf(&what, format, list) < 0) fail("out of memory");
  va_end(list);
  job->reasons = grown(job->reasons, job->reason_count, sizeof *job->reasons);
  bool first = process == &job->processes[0];
  job->reasons[job->reason_count++] =
      first ? what : printed("process %d (%s): %s", process->pid, process->name ? process->name : "?", what);
}

const char *in_sandbox(const struct request *request, const char *path) {
  size_t length = strlen(request->sandbox);
  if (strncmp(path, request->sandbox, length) != 0) return NULL;
  return path[length] == 0 ? "." : path[length] == '/' ? path + length + 1 : NULL;
}

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool is_deleted(const char *path) {
  size_t length = strlen(path);
  return length > 10 && strcmp(path + length - 10, " (deleted)") == 0;
}

enum map_kind map_kind(const struct request *request, const struct proc_map *map, const char **reason) {
  const char *name = map->name;
  if (strcmp(name, "[vdso]") == 0 || starts(name, "[vvar")) return MAP_OF_KERNEL;
  if (strcmp(name, "[stack]") == 0) return MAP_OF_STACK;
  *reason = NULL;
  if (strcmp(name, "[uprobes]") == 0) *reason = "is probed by a debugger";
  if (starts(name, "/SYSV")) *reason = "shares memory by System V's calls";
  if (starts(name, "/anon_hugepage")) *reason = "uses huge pages of its own";
  if (starts(name, "/dev/") && !starts(name, "/dev/zero") && !starts(name, "/dev/shm/")) *reason = "maps a device";
  if (*reason) return 0;
  if (map->permissions[3] != 's') return MAP_OF_PAGES;
  if (starts(name, "/dev/zero") || starts(name, "[anon_shmem")) return MAP_OF_SHARED;
  if (in_sandbox(request, name) && !is_deleted(name)) return MAP_OF_SHARED_FILE;
  if (map->permissions[1] != 'w' && !starts(name, "anon_inode:")) return MAP_OF_PAGES;
  *reason = "shares memory with others";
  return 0;
}

static void check_maps(struct job *job, const struct found_process *process) {
  for (size_t i = 0; i < process->map_count; i++) {
    const struct proc_map *map = &process->maps[i];
    const char *reason;
    enum map_kind kind = map_kind(job->request, map, &reason);
    if (kind == 0) return refuse(job, process, "it %s (%s)", reason, map->name);
    if (kind == MAP_OF_SHARED && job->process_count > 1)
      return refuse(job, process, "it shares memory with its child processes");
  }
}

static bool is_stream(const struct request *request, const struct stat *found, int which) {
  struct stat stream;
  return request->streams[which] && stat(request->streams[which], &stream) == 0 && stream.st_ino == found->st_ino &&
         stream.st_dev == found->st_dev;
}

// Whether the end of a pipe that is open here has another end somewhere.
static bool has_other_end(const struct found_process *process, const struct proc_fd *fd) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", process->pid, fd->fd);
  bool reads = (fd->flags & O_ACCMODE) == O_RDONLY;
  int end = open(path, (reads ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_CLOEXEC);
  // No reader: it cannot be opened for writing.
  if (end < 0) return false;
  struct pollfd look = {.fd = end, .events = POLLIN | POLLOUT};
  poll(&look, 1, 0);
  close(end);
  return (look.revents & (POLLHUP | POLLERR)) == 0;
}

static bool is_in_job(const struct job *job, const struct proc_fd *fd) {
  for (size_t i = 0; i < job->description_count; i++) {
    const struct found_description *other = &job->descriptions[i];
    const struct proc_fd *end = &job->processes[other->process].fds[other->fd];
    if (end->found.st_ino == fd->found.st_ino && end->found.st_dev == fd->found.st_dev &&
        (end->flags & O_ACCMODE) != (fd->flags & O_ACCMODE))
      return true;
  }
  return false;
}

static void check_regular(struct job *job, struct found_description *one, const struct found_process *process,
                          const struct proc_fd *fd) {
  const char *inside = in_sandbox(job->request, fd->path);
  for (int which = 0; which < 3; which++) {
    if (!is_stream(job->request, &fd->found, which)) continue;
    one->kind = OPEN_STDIN + (enum description_kind)which;
    bool at_end = (uint64_t)fd->found.st_size == fd->position || (fd->flags & O_APPEND);
    if (which > 0 && (!at_end || (fd->flags & O_ACCMODE) == O_RDONLY))
      refuse(job, process, "file descriptor %d is at another place than the end of the standard output", fd->fd);
    return;
  }
  if (starts(fd->path, "/memfd:")) return refuse(job, process, "file descriptor %d is memory (memfd)", fd->fd);
  if (fd->found.st_nlink == 0) {
    one->kind = OPEN_UNLINKED;
  } else if (inside) {
    one->kind = OPEN_SANDBOX;
    one->path = inside;
  } else if ((fd->flags & O_ACCMODE) == O_RDONLY) {
    one->kind = OPEN_ELSEWHERE;
    one->path = fd->path;
  } else {
    refuse(job, process, "file descriptor %d writes to %s, outside of the sandbox", fd->fd, fd->path);
  }
}

static const char *const DEVICES[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

static void check_description(struct job *job, struct found_description *one) {
  const struct found_process *process = &job->processes[one->process];
  const struct proc_fd *fd = &process->fds[one->fd];
  const char *path = fd->path;
  one->path = "";
  if (S_ISREG(fd->found.st_mode)) return check_regular(job, one, process, fd);
  if (S_ISDIR(fd->found.st_mode)) {
    const char *inside = in_sandbox(job->request, path);
    if (fd->found.st_nlink == 0) return refuse(job, process, "file descriptor %d is a deleted directory", fd->fd);
    one->kind = inside ? OPEN_SANDBOX : OPEN_ELSEWHERE;
    one->path = inside ? inside : path;
    return;
  }
  if (starts(path, "pipe:")) {
    one->kind = OPEN_PIPE;
    if (!is_in_job(job, fd) && has_other_end(process, fd))
      refuse(job, process, "file descriptor %d is a pipe to a process outside of the job", fd->fd);
    return;
  }
  for (size_t i = 0; i < sizeof DEVICES / sizeof *DEVICES; i++) {
    if (strcmp(path, DEVICES[i]) != 0) continue;
    one->kind = OPEN_DEVICE;
    one->path = path;
    return;
  }
  if (S_ISSOCK(fd->found.st_mode)) return refuse(job, process, "file descriptor %d is a socket", fd->fd);
  if (S_ISFIFO(fd->found.st_mode)) return refuse(job, process, "file descriptor %d is a named pipe", fd->fd);
  if (starts(path, "anon_inode:")) return refuse(job, process, "file descriptor %d is of the kind %s", fd->fd, path + 11);
  refuse(job, process, "file descriptor %d is the device %s", fd->fd, path);
}

static bool is_same_link(pid_t pid, const char *name) {
  char *its = proc_link(pid, name), *ours = proc_link(getpid(), name);
  bool same = its && ours && strcmp(its, ours) == 0;
  free(its);
  free(ours);
  return same;
}

static void check_process(struct job *job, const struct found_process *process) {
  if (process->stat.state == 'Z') return refuse(job, process, "it has ended, and its parent has not waited for it yet");
  if (process->status.tracer != 0) return refuse(job, process, "it is traced by process %d", process->status.tracer);
  if (process->status.seccomp != 0) return refuse(job, process, "it runs under a seccomp filter");
  if (!is_same_link(process->pid, "ns/mnt") || !is_same_link(process->pid, "root"))
    return refuse(job, process, "it runs in a container");
  if (!process->directory || is_deleted(process->directory))
    return refuse(job, process, "its working directory has been deleted");
  char *timers = proc_text(process->pid, "timers");
  if (timers && *timers) refuse(job, process, "it has timers of timer_create(2)");
  free(timers);
  check_maps(job, process);
}

// A lock in the sandbox is taken again with it. One elsewhere is against others, who do not move.
static void check_locks(struct job *job, const struct found_process *process) {
  for (size_t i = 0; i < process->fd_count; i++) {
    const struct proc_fd *fd = &process->fds[i];
    enum description_kind kind = job->descriptions[process->descriptions[i]].kind;
    for (size_t k = 0; k < fd->lock_count; k++) {
      if (fd->locks[k].kind == 0) return refuse(job, process, "file descriptor %d holds a lease (%s)", fd->fd, fd->path);
      if (kind != OPEN_SANDBOX && kind != OPEN_UNLINKED)
        return refuse(job, process, "file descriptor %d holds a lock outside of the sandbox (%s)", fd->fd, fd->path);
    }
  }
}

void check_job(struct job *job) {
  for (size_t i = 0; i < job->process_count; i++) check_process(job, &job->processes[i]);
  for (size_t i = 0; i < job->description_count; i++) check_description(job, &job->descriptions[i]);
  for (size_t i = 0; i < job->process_count; i++) check_locks(job, &job->processes[i]);
}
