#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

char *proc_text(pid_t pid, const char *name) {
  char path[128];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  size_t held = 0, room = 1 << 14;
  char *text = allocate(room);
  for (;;) {
    ssize_t got = read(file, text + held, room - held - 1);
    if (got <= 0) break;
    held += (size_t)got;
    if (room - held > 4096) continue;
    room *= 2;
    text = realloc(text, room);
    if (!text) fail("out of memory");
  }
  close(file);
  text[held] = 0;
  return text;
}

char *proc_link(pid_t pid, const char *name) {
  char path[128], target[4097];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  ssize_t length = readlink(path, target, sizeof target - 1);
  if (length < 0) return NULL;
  target[length] = 0;
  return printed("%s", target);
}

static const char *field(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
    if (strncmp(line, name, length) == 0 && line[length] == ':') return line + length + 1;
  return "";
}

// The last number of a line.
static int last_number(const char *line) {
  int number = 0;
  char *after;
  for (long one = strtol(line, &after, 10); after != line && memchr(line, '\n', (size_t)(after - line)) == NULL;
       line = after, one = strtol(line, &after, 10))
    number = (int)one;
  return number;
}

bool proc_status(pid_t pid, struct proc_status *status) {
  char *text = proc_text(pid, "status");
  if (!text) return false;
  status->parent = atoi(field(text, "PPid"));
  status->tracer = atoi(field(text, "TracerPid"));
  status->seccomp = atoi(field(text, "Seccomp"));
  status->no_new_privileges = atoi(field(text, "NoNewPrivs"));
  status->umask = (uint32_t)strtoul(field(text, "Umask"), NULL, 8);
  status->inner_pid = last_number(field(text, "NSpid"));
  free(text);
  return true;
}

pid_t inner_number(pid_t pid, pid_t tid) {
  char name[64];
  snprintf(name, sizeof name, "task/%d/status", tid);
  char *text = proc_text(pid, name);
  if (!text) return 0;
  pid_t number = last_number(field(text, "NSpid"));
  free(text);
  return number;
}

bool proc_stat(pid_t pid, struct proc_stat *stat) {
  char *text = proc_text(pid, "stat");
  char *after = text ? strrchr(text, ')') : NULL;
  if (!after) return false;
  uint64_t fields[53] = {0};
  stat->state = after[2];
  char *at = after + 3;
  for (int number = 4; number <= 52; number++) fields[number] = strtoull(at, &at, 10);
  free(text);
  stat->group = (pid_t)fields[5];
  stat->session = (pid_t)fields[6];
  stat->layout = (struct image_layout){.start_code = fields[26], .end_code = fields[27], .start_stack = fields[28],
                                       .start_data = fields[45], .end_data = fields[46],  .start_brk = fields[47],
                                       .arg_start = fields[48],  .arg_end = fields[49],   .env_start = fields[50],
                                       .env_end = fields[51]};
  return true;
}

struct proc_map *proc_maps(pid_t pid, size_t *count) {
  char *text = proc_text(pid, "maps");
  struct proc_map *maps = NULL;
  *count = 0;
  for (char *line = text, *next; line && *line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    maps = grown(maps, *count, sizeof *maps);
    struct proc_map *map = &maps[*count];
    int name = 0;
    if (sscanf(line, "%lx-%lx %4s %lx %*s %lu %n", &map->start, &map->end, map->permissions, &map->offset, &map->inode,
               &name) < 5)
      continue;
    map->name = printed("%s", name > 0 ? line + name : "");
    // Kernel addresses, such as vsyscall, are nobody's.
    if (map->start < USER_END) ++*count;
  }
  free(text);
  return maps;
}

// The numbers that are the names in a directory of /proc, ascending.
static int *numbers_in(pid_t pid, const char *name, size_t *count) {
  char path[128];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  DIR *directory = opendir(path);
  int *numbers = NULL;
  *count = 0;
  if (!directory) return NULL;
  for (struct dirent *entry; (entry = readdir(directory));) {
    char *after;
    long number = strtol(entry->d_name, &after, 10);
    if (*after != 0 || after == entry->d_name) continue;
    numbers = grown(numbers, *count, sizeof *numbers);
    size_t at = (*count)++;
    for (; at > 0 && numbers[at - 1] > number; at--) numbers[at] = numbers[at - 1];
    numbers[at] = (int)number;
  }
  closedir(directory);
  return numbers;
}

// The lines `lock: NUMBER: KIND ADVISORY READ|WRITE PID FILE START END`.
static void read_locks(const char *info, struct proc_fd *fd) {
  static const char *const KINDS[] = {[LOCK_OF_OPEN] = "FLOCK", [LOCK_OF_RANGE] = "OFDLCK", [LOCK_OF_PROCESS] = "POSIX"};
  for (const char *line = info; (line = strstr(line, "lock:\t")); line++) {
    struct proc_lock lock = {0};
    char kind[16] = "", access[16] = "", end[24] = "";
    int taken = sscanf(line, "lock: %*d: %15s %*s %15s %*d %*s %lu %23s", kind, access, &lock.start, end);
    for (unsigned i = LOCK_OF_OPEN; taken == 4 && i <= LOCK_OF_PROCESS; i++)
      if (strcmp(kind, KINDS[i]) == 0) lock.kind = i;
    lock.writes = strcmp(access, "WRITE") == 0;
    if (strcmp(end, "EOF") != 0) lock.length = strtoull(end, NULL, 10) - lock.start + 1;
    fd->locks = grown(fd->locks, fd->lock_count, sizeof *fd->locks);
    fd->locks[fd->lock_count++] = lock;
  }
}

struct proc_fd *proc_fds(pid_t pid, size_t *count) {
  size_t found;
  int *numbers = numbers_in(pid, "fd", &found);
  struct proc_fd *fds = allocate(found * sizeof *fds);
  *count = 0;
  for (size_t i = 0; i < found; i++) {
    struct proc_fd *one = &fds[*count];
    char name[64], path[128];
    snprintf(name, sizeof name, "fd/%d", numbers[i]);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, numbers[i]);
    one->fd = numbers[i];
    one->path = proc_link(pid, name);
    if (!one->path || stat(path, &one->found)) continue;
    snprintf(name, sizeof name, "fdinfo/%d", numbers[i]);
    char *info = proc_text(pid, name);
    if (!info) continue;
    one->position = strtoull(field(info, "pos"), NULL, 10);
    one->flags = (uint32_t)strtoul(field(info, "flags"), NULL, 8);
    read_locks(info, one);
    free(info);
    ++*count;
  }
  free(numbers);
  return fds;
}

// After the highest number come low ones again: the first thread need not have the lowest.
pid_t *proc_threads(pid_t pid, size_t *count) {
  pid_t *tids = numbers_in(pid, "task", count);
  for (size_t i = 1; i < *count; i++) {
    if (tids[i] != pid) continue;
    memmove(tids + 1, tids, i * sizeof *tids);
    tids[0] = pid;
  }
  return tids;
}

pid_t *proc_children(pid_t pid, size_t *count) {
  size_t threads;
  pid_t *tids = proc_threads(pid, &threads);
  pid_t *children = NULL;
  *count = 0;
  for (size_t i = 0; i < threads; i++) {
    char name[64];
    snprintf(name, sizeof name, "task/%d/children", tids[i]);
    char *text = proc_text(pid, name);
    if (!text && i == 0 && errno == ENOENT) fail("this kernel does not list the children of processes (CONFIG_PROC_CHILDREN)");
    char *at = text, *after;
    for (long child; at && (child = strtol(at, &after, 10)) > 0; at = after) {
      children = grown(children, *count, sizeof *children);
      children[(*count)++] = (pid_t)child;
    }
    free(text);
  }
  free(tids);
  return children;
}
