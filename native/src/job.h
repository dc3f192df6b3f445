// A job as it is found: its processes, and what they have open.
#ifndef JOB_H
#define JOB_H

#include "proc.h"
#include "trace.h"

// The name of the processes that stand between a waiter and a restored program.
#define RESTORER "gry-restore"

struct request {
  pid_t pid;
  bool below;  // the job is the child of `pid`, and may have been restored before
  const char *sandbox, *to;
  const char *base;  // an image that it may go on from; NULL: the one before it, if there is one
  const char *streams[3];  // the files of its standard input, output and error; NULL: none
  const char **skip;       // names at the top of the sandbox that are not the job's
  size_t skips;
  bool kill;
  const char *environment;  // what /proc shows as the restored processes' environment; NULL: what it was
  const char *report;  // a file that says that it was restored, or why it was not; NULL: none
};

struct found_process {
  pid_t pid, number;  // number: in its own pid namespace
  int parent;         // an index; -1: the first
  struct proc_status status;
  struct proc_stat stat;
  struct proc_map *maps;
  struct proc_fd *fds;
  uint32_t *descriptions;  // of each descriptor
  pid_t *threads;
  size_t map_count, fd_count, thread_count;
  char *name, *directory, *program;
  struct traced traced;
};

struct found_description {
  size_t process, fd;  // indexes of one descriptor that has it
  enum description_kind kind;
  const char *path;  // as in the image
};

struct job {
  const struct request *request;
  struct found_process *processes;
  struct found_description *descriptions;
  char **reasons;  // why it cannot be checkpointed
  size_t process_count, description_count, reason_count;
};

// Reads everything about a job and its descendants, and finds the reasons. `stop`: with all its threads stopped.
struct job *collect(const struct request *request, bool stop);
// `path` relative to the sandbox, "." for itself; NULL if it is elsewhere.
const char *in_sandbox(const struct request *request, const char *path);
// How a map is kept; 0: it cannot be, and `reason` says why.
enum map_kind map_kind(const struct request *request, const struct proc_map *map, const char **reason);
void check_job(struct job *job);
void refuse(struct job *job, const struct found_process *process, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Returns the size of the image without its bases.
uint64_t dump_job(const struct request *request);

#endif
