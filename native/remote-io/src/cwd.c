#include "cwd.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "say.h"
#include "target.h"

#define BUCKETS 1024
// Parents are asked for at most so far up.
#define DEEPEST 32

struct place {
  pid_t tgid;
  uint64_t started;
  char *path;  // NULL: on this machine
  struct place *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *buckets[BUCKETS];
static atomic_bool used;

bool has_cwds(void) { return used; }

// The process numbers of the dead are used again, so the start counts too.
static struct place *find(const struct process *process) {
  struct place **at = &buckets[process->tgid % BUCKETS];
  while (*at) {
    struct place *one = *at;
    if (one->tgid == process->tgid && one->started == process->started) return one;
    if (one->tgid == process->tgid) {
      *at = one->next;
      free(one->path);
      free(one);
    } else {
      at = &one->next;
    }
  }
  return NULL;
}

static void put(const struct process *process, const char *path) {
  struct place *one = find(process);
  if (!one) {
    one = allocate(sizeof *one);
    *one = (struct place){.tgid = process->tgid, .started = process->started, .next = buckets[process->tgid % BUCKETS]};
    buckets[process->tgid % BUCKETS] = one;
  }
  char *before = one->path;
  one->path = path ? copied(path) : NULL;
  free(before);
}

// A process that is not known has that of its parent, which was given to it before the parent's changed.
static const char *inherited(pid_t tid, int depth) {
  struct process process;
  if (depth > DEEPEST || tid <= 1 || !process_of(tid, &process)) return NULL;
  struct place *one = find(&process);
  if (one) return one->path;
  const char *path = inherited(process.parent, depth + 1);
  put(&process, path);
  return path;
}

char *cwd_of(pid_t tid) {
  if (!used) return NULL;
  pthread_mutex_lock(&lock);
  const char *path = inherited(tid, 0);
  char *copy = path ? copied(path) : NULL;
  pthread_mutex_unlock(&lock);
  return copy;
}

static void settle_children(pid_t tgid) {
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/task", tgid);
  DIR *tasks = opendir(name);
  for (struct dirent *task; tasks && (task = readdir(tasks));) {
    char children[64 + sizeof task->d_name];
    snprintf(children, sizeof children, "/proc/%d/task/%s/children", tgid, task->d_name);
    FILE *list = fopen(children, "re");
    for (int child; list && fscanf(list, "%d", &child) == 1;) inherited(child, 0);
    if (list) fclose(list);
  }
  if (tasks) closedir(tasks);
}

void set_cwd(pid_t tid, const char *path) {
  struct process process;
  if (!process_of(tid, &process)) return;
  pthread_mutex_lock(&lock);
  settle_children(process.tgid);
  if (path) used = true;
  put(&process, path);
  pthread_mutex_unlock(&lock);
}
