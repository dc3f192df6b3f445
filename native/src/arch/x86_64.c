#include <cpuid.h>
#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../arch.h"
#include "../say.h"

const unsigned char arch_syscall[] = {0x0f, 0x05};
const size_t arch_syscall_bytes = sizeof arch_syscall;

const unsigned char *arch_find_syscall(const unsigned char *code, size_t bytes) {
  return memmem(code, bytes, arch_syscall, sizeof arch_syscall);
}

void arch_call(struct user_regs_struct *registers, uint64_t address, long number, const uint64_t words[6]) {
  registers->orig_rax = (unsigned long long)-1;
  registers->rax = (unsigned long long)number;
  registers->rdi = words[0];
  registers->rsi = words[1];
  registers->rdx = words[2];
  registers->r10 = words[3];
  registers->r8 = words[4];
  registers->r9 = words[5];
  registers->rip = address;
}

long arch_result(const struct user_regs_struct *registers) { return (long)registers->rax; }

size_t arch_state(pid_t tid, unsigned char *state, size_t room) {
  struct iovec place = {state, room};
  if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &place)) fail_errno("the extended state of %d cannot be read", tid);
  return place.iov_len;
}

bool arch_set_state(pid_t tid, const unsigned char *state, size_t bytes) {
  struct iovec place = {(void *)(uintptr_t)state, bytes};
  return ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &place) == 0;
}

// What the kernel leaves in rax of an interrupted system call, which it hides from programs.
#define ERESTARTNOHAND (-514)
#define ERESTART_RESTARTBLOCK (-516)

// The number that was put into eax just before the call at an address; 0: it is not to be seen there.
static uint64_t number_in_code(const struct traced *process, uint64_t address) {
  unsigned char code[32];
  if (pread(process->memory, code, sizeof code, (off_t)(address - sizeof code)) != sizeof code) return 0;
  for (size_t at = sizeof code - 5; at > 0; at--) {
    uint32_t number;
    memcpy(&number, code + at + 1, sizeof number);
    bool sleeps = number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_futex || number == SYS_poll;
    if (code[at] == 0xb8 && sleeps) return number;
  }
  return 0;
}

struct user_regs_struct arch_carried(const struct traced *process, const struct user_regs_struct *registers) {
  struct user_regs_struct carried = *registers;
  if (registers->orig_rax != SYS_restart_syscall || (long)registers->rax != ERESTART_RESTARTBLOCK) return carried;
  uint64_t number = number_in_code(process, registers->rip - 2);
  // Without it, the program is told that a signal came.
  if (number != 0) carried.orig_rax = number;
  return carried;
}

struct user_regs_struct arch_restored(const struct user_regs_struct *carried) {
  struct user_regs_struct registers = *carried;
  // Another process knows nothing of its sleep.
  if ((long)registers.orig_rax >= 0 && (long)registers.rax == ERESTART_RESTARTBLOCK)
    registers.rax = (unsigned long long)ERESTARTNOHAND;
  return registers;
}

struct user_regs_struct arch_resumed(const struct traced *process, pid_t tid, const struct user_regs_struct *registers) {
  (void)process, (void)tid;
  return *registers;
}

// On its way out of the kernel, by registers of an interrupted call, the thread makes that call again, or ends it if a
// signal came.
void arch_put_back(const struct traced *process, pid_t tid, const struct user_regs_struct *registers,
                   const unsigned char *state, size_t bytes) {
  (void)process, (void)state, (void)bytes;
  trace_stop_again(tid);
  trace_set_registers(tid, registers);
}

uint64_t arch_processor(void) {
  uint32_t words[12] = {0};
  __cpuid_count(7, 0, words[0], words[1], words[2], words[3]);
  // The state that has to fit, and its parts.
  if (__get_cpuid_max(0, NULL) >= 13) {
    __cpuid_count(13, 0, words[4], words[5], words[6], words[7]);
    words[5] = 0;
  }
  __cpuid(1, words[8], words[9], words[10], words[11]);
  // The model, and which of the processors we are on.
  words[8] = words[9] = 0;
  return hash_more(hash_start(), words, sizeof words);
}
