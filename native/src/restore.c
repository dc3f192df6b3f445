#include "restore.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "job.h"
#include "say.h"

void own_vdso(uint64_t *bytes, uint64_t *hash) {
  size_t count;
  struct proc_map *maps = proc_maps(getpid(), &count);
  *bytes = *hash = 0;
  for (size_t i = 0; i < count; i++) {
    size_t length = maps[i].end - maps[i].start;
    bool code = strcmp(maps[i].name, "[vdso]") == 0;
    if (code || strncmp(maps[i].name, "[vvar", 5) == 0) *bytes += length;
    if (code) *hash = hash_more(hash_start(), (const void *)maps[i].start, length);
  }
}

static void write_to(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (write(file, text, strlen(text)) < 0 && errno != EPERM) fail_errno("%s cannot be written", path);
  close(file);
}

// Numbers of processes can only be chosen in a namespace in which we are the administrator.
static void enter_namespaces(struct restoring *restoring) {
  uid_t uid = geteuid();
  gid_t gid = getegid();
  restoring->exact = unshare(CLONE_NEWPID) == 0;
  if (!restoring->exact && unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0) {
    write_to("/proc/self/setgroups", "deny");
    write_to("/proc/self/uid_map", printed("%u %u 1", uid, uid));
    write_to("/proc/self/gid_map", printed("%u %u 1", gid, gid));
    restoring->exact = restoring->bounded = true;
  }
  if (!restoring->exact && restoring->image->process_count > 1)
    fail("several processes cannot be restored: this machine permits no namespace for their numbers");
}

static void platform(const struct image *image) {
  uint64_t bytes, hash;
  own_vdso(&bytes, &hash);
  if (bytes != image->job.vdso_bytes || hash != image->job.vdso_hash)
    fail("the image was made under another kernel, whose code is mapped into programs");
}

static void place_limits(struct restoring *restoring) {
  int last = 2;
  for (size_t i = 0; i < restoring->image->process_count; i++) {
    const struct read_process *process = &restoring->image->processes[i];
    for (size_t k = 0; k < process->fd_count; k++)
      if (process->fds[k].fd > last) last = process->fds[k].fd;
  }
  restoring->first_free = last + 1;
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (restoring->reports) say_to = fcntl(say_to, F_DUPFD_CLOEXEC, restoring->first_free);
}

// Starts the job's processes, empty.
static pid_t start(const struct restoring *restoring) {
  pid_t first = fork_with_number(restoring->exact ? restoring->image->processes[0].process.pid : 0);
  if (first == 0) become(restoring, 0);
  if (first < 0) fail_errno("no process with the number %d can be made", restoring->image->processes[0].process.pid);
  return first;
}

// The wait status of the first process, when it has ended.
static int wait_for(pid_t first) {
  for (;;) {
    int status;
    pid_t ended = waitpid(-1, &status, __WALL);
    if (ended == first) return status;
    if (ended < 0 && errno != EINTR) fail_errno("the job cannot be waited for");
  }
}

static void wait_until_ready(const struct restoring *restoring, pid_t child) {
  struct timespec began, now;
  clock_gettime(CLOCK_MONOTONIC, &began);
  while ((size_t)atomic_load(&restoring->progress->ready) < restoring->image->process_count) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    int status;
    // It has said why.
    if (waitpid(child, &status, WNOHANG) == child || atomic_load(&restoring->progress->failed)) exit(1);
    if (now.tv_sec - began.tv_sec > RESTORE_SECONDS) fail("the processes cannot be made within %d s", RESTORE_SECONDS);
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
  }
}

// The number by which we know the process that has another in its own namespace.
static pid_t outer_number(pid_t above, pid_t number) {
  size_t count;
  pid_t *children = proc_children(above, &count), found = 0;
  for (size_t i = 0; i < count && found == 0; i++)
    found = inner_number(children[i], children[i]) == number ? children[i] : outer_number(children[i], number);
  free(children);
  return found;
}

static void rebuild_all(const struct restoring *restoring, pid_t child) {
  const struct image *image = restoring->image;
  wait_until_ready(restoring, child);
  crash_point("restore.made");
  for (size_t i = 0; i < image->process_count; i++) {
    pid_t pid = restoring->exact ? outer_number(child, image->processes[i].process.pid) : child;
    if (pid == 0) fail("the process %d ended before it was restored", image->processes[i].process.pid);
    rebuild(restoring, i, pid);
  }
  crash_point("restore.rebuilt");
  if (restoring->reports) dprintf(say_to, "restored\n");
  release();
  crash_point("restore.released");
}

// What the job has open must end with the job.
static void close_all(const struct restoring *restoring) {
  for (size_t i = 0; i < restoring->image->description_count; i++) close(restoring->open[i]);
  close(0);
  close(1);
}

// The first process of a namespace adopts its orphans, and ends them all with it. It says how the job's first ended.
static _Noreturn void keep_namespace(const struct restoring *restoring, int told) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pid_t first = start(restoring);
  close_all(restoring);
  int status = wait_for(first);
  _exit(write(told, &status, sizeof status) < 0);
}

static void open_report(const char *path) {
  if (!path) return;
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) fail_errno("the report %s cannot be written", path);
  say_to = file;
}

int restore_job(const char *path, const struct request *request) {
  const char *sandbox = request->sandbox;
  open_report(request->report);
  struct restoring restoring = {.image = read_image(path), .sandbox = sandbox};
  restoring.reports = request->report != NULL;
  restoring.environment = request->environment;
  platform(restoring.image);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  prctl(PR_SET_NAME, RESTORER);
  int directory = open(sandbox, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) fail_errno("the sandbox %s cannot be opened", sandbox);
  restore_files(restoring.image, directory, request->skip, request->skips);
  crash_point("restore.placed");
  place_limits(&restoring);
  open_descriptions(&restoring, directory);
  close(directory);
  restoring.progress = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (restoring.progress == MAP_FAILED) fail_errno("no memory can be shared");
  enter_namespaces(&restoring);
  if (!restoring.exact) {
    pid_t first = start(&restoring);
    rebuild_all(&restoring, first);
    close_all(&restoring);
    return wait_for(first);
  }
  int told[2], status = SIGKILL;
  if (pipe2(told, O_CLOEXEC)) fail_errno("no pipe can be made");
  pid_t keeper = fork();
  if (keeper < 0) fail_errno("no process can be made");
  if (keeper == 0) keep_namespace(&restoring, told[1]);
  close(told[1]);
  rebuild_all(&restoring, keeper);
  close_all(&restoring);
  if (read(told[0], &status, sizeof status) != sizeof status) status = SIGKILL;
  while (waitpid(keeper, NULL, 0) < 0 && errno == EINTR) continue;
  return status;
}
