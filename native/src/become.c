#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "restore.h"
#include "say.h"

pid_t fork_with_number(pid_t number) {
  struct clone_args how = {.exit_signal = SIGCHLD};
  if (number > 0) {
    how.set_tid = (uint64_t)(uintptr_t)&number;
    how.set_tid_size = 1;
  }
  return (pid_t)syscall(SYS_clone3, &how, sizeof how);
}

static const struct restoring *own;

static void report_failure(void) { atomic_store(&own->progress->failed, 1); }

static int by_number(const int *a, const int *b) { return *a - *b; }

// Leaves open what the process had open, and the file of its program.
static void set_descriptors(const struct restoring *restoring, const struct read_process *process, int program) {
  for (size_t i = 0; i < process->fd_count; i++) {
    const struct image_fd *fd = &process->fds[i];
    if (dup3(restoring->open[fd->description], fd->fd, fd->close_on_exec ? O_CLOEXEC : 0) < 0)
      fail_errno("file descriptor %d cannot be restored", fd->fd);
  }
  int *kept = allocate((process->fd_count + 1) * sizeof *kept);
  size_t count = 0;
  for (size_t i = 0; i < process->fd_count; i++) kept[count++] = process->fds[i].fd;
  if (program >= 0) kept[count++] = program;
  qsort(kept, count, sizeof *kept, (int (*)(const void *, const void *))by_number);
  unsigned next = 0;
  for (size_t i = 0; i < count; i++) {
    if ((unsigned)kept[i] > next) syscall(SYS_close_range, next, (unsigned)kept[i] - 1, 0);
    next = (unsigned)kept[i] + 1;
  }
  syscall(SYS_close_range, next, ~0U, 0);
}

// Makes the processes below one. Returns, in each of them, which it is.
static size_t fork_below(const struct image *image, size_t index) {
  const struct image_process *is = &image->processes[index].process;
  if (is->session == is->pid) setsid();
  if (is->group == is->pid) setpgid(0, 0);
  for (size_t i = index + 1; i < image->process_count; i++) {
    const struct image_process *child = &image->processes[i].process;
    if (child->parent != is->pid) continue;
    pid_t pid = fork_with_number(child->pid);
    if (pid == 0) return fork_below(image, i);
    if (pid < 0) fail_errno("no process with the number %d can be made", child->pid);
  }
  return index;
}

_Noreturn void become(const struct restoring *restoring, size_t index) {
  const struct image *image = restoring->image;
  own = restoring;
  before_failing = report_failure;
  // As its waiter made it.
  if (index == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  index = fork_below(image, index);
  const struct read_process *process = &image->processes[index];
  const struct image_process *is = &process->process;
  const char *directory = process->directory;
  const char *path = *directory == '/' ? directory : printed("%s/%s", restoring->sandbox, directory);
  if (chdir(path)) fail_errno("the working directory %s cannot be entered", path);
  umask(is->umask);
  set_descriptors(restoring, process, restoring->programs[index]);
  for (int i = 0; i < RLIM_NLIMITS; i++) {
    struct rlimit limit;
    getrlimit((enum __rlimit_resource)i, &limit);
    // This machine may allow less.
    if (is->limits[i].hard < limit.rlim_max) limit.rlim_max = is->limits[i].hard;
    limit.rlim_cur = is->limits[i].soft < limit.rlim_max ? is->limits[i].soft : limit.rlim_max;
    setrlimit((enum __rlimit_resource)i, &limit);
  }
  if (is->no_new_privileges) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  atomic_fetch_add(&restoring->progress->ready, 1);
  for (;;) pause();
}
