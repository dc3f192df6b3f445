// Stops processes by ptrace, and makes them call the kernel.
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image.h"

// Where a process's call into the kernel is, in its memory.
struct traced {
  pid_t pid;
  int memory;        // /proc/PID/mem
  uint64_t syscall;  // the address of a syscall instruction
};

// Stops one thread; false if it has ended. Ends with a sentence if it may not be traced or does not stop in time.
bool trace_stop(pid_t pid, pid_t tid, int seconds);
// Opens the memory of a process whose threads are stopped, and finds a syscall instruction in its vdso.
void trace_open(struct traced *process, pid_t pid);
// While it is set, the processes end with us: they are being changed.
void trace_options(pid_t tid, bool together);

void trace_registers(pid_t tid, struct user_regs_struct *registers);
void trace_set_registers(pid_t tid, const struct user_regs_struct *registers);
void trace_set_mask(pid_t tid, uint64_t mask);
uint64_t trace_mask(pid_t tid);
// Signals that wait while a process calls the kernel for us.
#define MASK_ALL (~0UL)

// A system call by a stopped thread, with its registers put back afterwards. Returns what the kernel did.
long trace_call(const struct traced *process, pid_t tid, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                uint64_t e, uint64_t f);
// The thread that the last call made.
extern pid_t trace_made;
void trace_read(const struct traced *process, uint64_t address, void *to, size_t length);
void trace_write(const struct traced *process, uint64_t address, const void *from, size_t length);
// Lets a thread go on up to where it begins or ends a call of the kernel.
void trace_to_call(pid_t tid);
// Lets a thread that stands there go on until it is about to leave the kernel. Its signals must wait.
void trace_stop_again(pid_t tid);

#endif
