#include "trace.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch.h"
#include "proc.h"
#include "say.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// The next stop of a thread; 0 if it has ended.
static int next_stop(pid_t tid, double until) {
  for (;;) {
    int status;
    pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
    if (got == tid) return WIFSTOPPED(status) ? status : 0;
    if (got < 0 && errno != EINTR) return 0;
    if (now() > until) fail("the process %d does not stop", tid);
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
}

bool trace_stop(pid_t pid, pid_t tid, int seconds) {
  if (ptrace(PTRACE_SEIZE, tid, 0, 0)) {
    if (errno == ESRCH) return false;
    fail_errno("the process %d may not be traced", pid);
  }
  if (ptrace(PTRACE_INTERRUPT, tid, 0, 0)) return false;
  double until = now() + seconds;
  for (;;) {
    int status = next_stop(tid, until);
    if (status == 0) return false;
    if (status >> 16 == PTRACE_EVENT_STOP) return true;
    // A signal was about to be delivered: it is, and the thread stops after it.
    ptrace(PTRACE_CONT, tid, 0, status >> 16 == 0 ? WSTOPSIG(status) : 0);
  }
}

// The next stop of a thread that we let go on.
static int stopped_status(pid_t tid) {
  int status;
  while (waitpid(tid, &status, __WALL) < 0)
    if (errno != EINTR) fail_errno("the process %d cannot be waited for", tid);
  if (!WIFSTOPPED(status)) fail("the process %d ended while it was changed", tid);
  return status;
}

void trace_options(pid_t tid, bool together) {
  long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | (together ? PTRACE_O_EXITKILL : 0);
  ptrace(PTRACE_SETOPTIONS, tid, 0, options);
}

void trace_open(struct traced *process, pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", pid);
  process->pid = pid;
  process->memory = open(path, O_RDWR | O_CLOEXEC);
  if (process->memory < 0) fail_errno("the memory of process %d cannot be read", pid);
  size_t count;
  struct proc_map *maps = proc_maps(pid, &count);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(maps[i].name, "[vdso]") != 0) continue;
    size_t bytes = maps[i].end - maps[i].start;
    unsigned char *code = allocate(bytes);
    trace_read(process, maps[i].start, code, bytes);
    const unsigned char *found = arch_find_syscall(code, bytes);
    if (found) process->syscall = maps[i].start + (uint64_t)(found - code);
    free(code);
  }
  if (process->syscall == 0) fail("the process %d has no vdso with a system call", pid);
}

void trace_registers(pid_t tid, struct user_regs_struct *registers) {
  struct iovec place = {registers, sizeof *registers};
  if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &place)) fail_errno("the registers of %d cannot be read", tid);
  if (place.iov_len != sizeof *registers) fail("the process %d is a program of 32 bits", tid);
}

void trace_set_registers(pid_t tid, const struct user_regs_struct *registers) {
  struct iovec place = {(void *)(uintptr_t)registers, sizeof *registers};
  if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &place)) fail_errno("the registers of %d cannot be set", tid);
}

void trace_set_mask(pid_t tid, uint64_t mask) {
  if (ptrace(PTRACE_SETSIGMASK, tid, 8, &mask)) fail_errno("the signal mask of %d cannot be set", tid);
}

uint64_t trace_mask(pid_t tid) {
  uint64_t mask;
  if (ptrace(PTRACE_GETSIGMASK, tid, 8, &mask)) fail_errno("the signal mask of %d cannot be read", tid);
  return mask;
}

pid_t trace_made;

void trace_to_call(pid_t tid) {
  for (;;) {
    if (ptrace(PTRACE_SYSCALL, tid, 0, 0)) fail_errno("the process %d cannot be made to go on", tid);
    int status = stopped_status(tid);
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) return;
    unsigned long made;
    if (status >> 16 == PTRACE_EVENT_CLONE && ptrace(PTRACE_GETEVENTMSG, tid, 0, &made) == 0) trace_made = (pid_t)made;
  }
}

void trace_stop_again(pid_t tid) {
  if (ptrace(PTRACE_INTERRUPT, tid, 0, 0)) fail_errno("the process %d cannot be stopped", tid);
  for (int status = 0; status >> 16 != PTRACE_EVENT_STOP; status = stopped_status(tid))
    if (ptrace(PTRACE_CONT, tid, 0, 0)) fail_errno("the process %d cannot be made to go on", tid);
}

long trace_call(const struct traced *process, pid_t tid, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                uint64_t e, uint64_t f) {
  struct user_regs_struct before, during;
  trace_registers(tid, &before);
  during = before;
  arch_call(&during, process->syscall, number, (const uint64_t[]){a, b, c, d, e, f});
  trace_set_registers(tid, &during);
  trace_to_call(tid);
  trace_to_call(tid);
  trace_registers(tid, &during);
  trace_set_registers(tid, &before);
  return arch_result(&during);
}

void trace_read(const struct traced *process, uint64_t address, void *to, size_t length) {
  while (length > 0) {
    ssize_t got = pread(process->memory, to, length, (off_t)address);
    if (got <= 0) fail_errno("the memory of process %d at %lx cannot be read", process->pid, address);
    to = (char *)to + got;
    address += (uint64_t)got;
    length -= (size_t)got;
  }
}

void trace_write(const struct traced *process, uint64_t address, const void *from, size_t length) {
  while (length > 0) {
    ssize_t done = pwrite(process->memory, from, length, (off_t)address);
    if (done <= 0) fail_errno("the memory of process %d at %lx cannot be written", process->pid, address);
    from = (const char *)from + done;
    address += (uint64_t)done;
    length -= (size_t)done;
  }
}
