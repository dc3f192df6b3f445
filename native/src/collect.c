#include <errno.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "job.h"
#include "say.h"

#define MOST_PROCESSES 1024
// A job that does not stop by then goes on.
#define STOP_SECONDS 5

static bool is_restorer(pid_t pid) {
  char *name = proc_text(pid, "comm");
  bool is = name && strcmp(name, RESTORER "\n") == 0;
  free(name);
  return is;
}

// The job's first process.
static pid_t first_of(const struct request *request) {
  pid_t pid = request->pid;
  for (bool down = request->below; down; down = is_restorer(pid)) {
    size_t count;
    pid_t *children = proc_children(pid, &count);
    if (count == 0) fail("the process %d runs no program", pid);
    if (count > 1) fail("the job has processes whose parents have ended");
    pid = children[0];
    free(children);
  }
  return pid;
}

static void add_threads(struct found_process *process, bool stop) {
  if (!stop) {
    process->threads = proc_threads(process->pid, &process->thread_count);
    return;
  }
  // A thread may start others until it is stopped.
  for (bool more = true; more;) {
    size_t count;
    pid_t *tids = proc_threads(process->pid, &count);
    more = false;
    for (size_t i = 0; i < count; i++) {
      bool known = false;
      for (size_t k = 0; k < process->thread_count; k++) known |= process->threads[k] == tids[i];
      if (known || !trace_stop(process->pid, tids[i], STOP_SECONDS)) continue;
      process->threads = grown(process->threads, process->thread_count, sizeof *process->threads);
      process->threads[process->thread_count++] = tids[i];
      more = true;
    }
    free(tids);
  }
  if (process->thread_count == 0 || process->threads[0] != process->pid)
    fail("the process %d ended while it was read", process->pid);
}

static void add_process(struct job *job, pid_t pid, int parent, bool stop) {
  if (job->process_count == MOST_PROCESSES) fail("the job has more than %d processes", MOST_PROCESSES);
  job->processes = grown(job->processes, job->process_count, sizeof *job->processes);
  size_t index = job->process_count++;
  struct found_process *process = &job->processes[index];
  process->pid = pid;
  process->parent = parent;
  // Who traces it now is not we.
  if (!proc_status(pid, &process->status)) fail("there is no process %d", pid);
  if (process->status.tracer != 0 || !proc_stat(pid, &process->stat) || process->stat.state == 'Z') return;
  add_threads(process, stop);
  size_t count;
  pid_t *children = proc_children(pid, &count);
  for (size_t i = 0; i < count; i++) add_process(job, children[i], (int)index, stop);
  free(children);
}

// What they have open, once all are stopped: what they share must not change any more.
static void describe(struct found_process *process) {
  if (!process->threads) return;
  pid_t tracer = process->status.tracer;
  // It may have started another program until it was stopped.
  if (!proc_status(process->pid, &process->status) || !proc_stat(process->pid, &process->stat))
    fail("the process %d ended while it was read", process->pid);
  process->status.tracer = tracer;
  process->name = proc_text(process->pid, "comm");
  if (process->name) process->name[strcspn(process->name, "\n")] = 0;
  process->number = process->status.inner_pid;
  process->maps = proc_maps(process->pid, &process->map_count);
  process->fds = proc_fds(process->pid, &process->fd_count);
  process->directory = proc_link(process->pid, "cwd");
  process->program = proc_link(process->pid, "exe");
}

static bool is_same(const struct found_process *p, const struct proc_fd *a, const struct found_process *q,
                    const struct proc_fd *b) {
  if (a->found.st_dev != b->found.st_dev || a->found.st_ino != b->found.st_ino || a->flags != b->flags) return false;
  long order = syscall(SYS_kcmp, p->pid, q->pid, KCMP_FILE, a->fd, b->fd);
  // A kernel without it: two that are at the same place are taken to be one.
  return order < 0 ? a->position == b->position : order == 0;
}

static void number_descriptions(struct job *job) {
  for (size_t p = 0; p < job->process_count; p++) {
    struct found_process *process = &job->processes[p];
    process->descriptions = allocate(process->fd_count * sizeof *process->descriptions);
    for (size_t f = 0; f < process->fd_count; f++) {
      size_t k = 0;
      for (; k < job->description_count; k++) {
        const struct found_description *known = &job->descriptions[k];
        const struct found_process *other = &job->processes[known->process];
        if (is_same(process, &process->fds[f], other, &other->fds[known->fd])) break;
      }
      if (k == job->description_count) {
        job->descriptions = grown(job->descriptions, k, sizeof *job->descriptions);
        job->descriptions[k] = (struct found_description){.process = p, .fd = f};
        job->description_count++;
      }
      process->descriptions[f] = (uint32_t)k;
    }
  }
}

struct job *collect(const struct request *request, bool stop) {
  struct job *job = allocate(sizeof *job);
  job->request = request;
  add_process(job, first_of(request), -1, stop);
  for (size_t i = 0; i < job->process_count; i++) describe(&job->processes[i]);
  number_descriptions(job);
  check_job(job);
  return job;
}
