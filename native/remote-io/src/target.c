#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "say.h"

#define PAGE 4096

char *read_text(pid_t tid, uint64_t address) {
  char text[PATH_MAX];
  for (size_t got = 0; got < sizeof text;) {
    // A read must not go beyond what is mapped.
    size_t part = PAGE - (address + got) % PAGE;
    if (part > sizeof text - got) part = sizeof text - got;
    struct iovec to = {text + got, part}, from = {(void *)(uintptr_t)(address + got), part};
    ssize_t read = process_vm_readv(tid, &to, 1, &from, 1, 0);
    if (read <= 0) {
      errno = EFAULT;
      return NULL;
    }
    if (memchr(text + got, 0, read)) return copied(text);
    got += read;
  }
  errno = ENAMETOOLONG;
  return NULL;
}

bool read_memory(pid_t tid, uint64_t address, void *to, size_t bytes) {
  struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};
  return process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

bool write_memory(pid_t tid, uint64_t address, const void *from, size_t bytes) {
  struct iovec here = {(void *)(uintptr_t)from, bytes}, there = {(void *)(uintptr_t)address, bytes};
  return process_vm_writev(tid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

bool identify(pid_t tid, int fd, struct identity *found) {
  char path[64];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", tid, fd);
  if (stat(path, &status)) return false;
  *found = (struct identity){status.st_dev, status.st_ino};
  return true;
}

static bool read_proc(pid_t tid, const char *name, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", tid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, text, size - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = 0;
  return true;
}

static long field(const char *text, const char *name, int base) {
  const char *at = strstr(text, name);
  return at ? strtol(at + strlen(name), NULL, base) : 0;
}

bool process_of(pid_t tid, struct process *found) {
  char text[4096];
  if (!read_proc(tid, "status", text, sizeof text)) return false;
  found->tgid = field(text, "\nTgid:", 10);
  found->parent = field(text, "\nPPid:", 10);
  if (!read_proc(found->tgid, "stat", text, sizeof text)) return false;
  // The name, in parentheses, can have any characters. The start is the 20th field behind it.
  const char *at = strrchr(text, ')');
  for (int i = 0; at && i < 20; i++) at = strchr(at + 1, ' ');
  found->started = at ? strtoull(at + 1, NULL, 10) : 0;
  return true;
}

mode_t umask_of(pid_t tid) {
  char text[4096];
  return read_proc(tid, "status", text, sizeof text) ? field(text, "Umask:", 8) : 022;
}

int take_descriptor(pid_t tid, int fd) {
  int handle = syscall(SYS_pidfd_open, tid, 0);
  if (handle < 0) {
    // It is a thread.
    struct process process;
    if (!process_of(tid, &process)) {
      errno = ESRCH;
      return -1;
    }
    handle = syscall(SYS_pidfd_open, process.tgid, 0);
    if (handle < 0) return -1;
  }
  int taken = syscall(SYS_pidfd_getfd, handle, fd, 0);
  int error = errno;
  close(handle);
  errno = error;
  return taken;
}
