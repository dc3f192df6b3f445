#include <asm/ptrace.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../arch.h"
#include "../say.h"

#define SVC 0xd4000001u
const unsigned char arch_syscall[] = {0x01, 0x00, 0x00, 0xd4};
const size_t arch_syscall_bytes = sizeof arch_syscall;

const unsigned char *arch_find_syscall(const unsigned char *code, size_t bytes) {
  for (size_t at = 0; at + sizeof arch_syscall <= bytes; at += sizeof arch_syscall)
    if (memcmp(code + at, arch_syscall, sizeof arch_syscall) == 0) return code + at;
  return NULL;
}

// The kind of the last branch, which forbids most of its targets.
#define BRANCH_TYPE (3UL << 10)

void arch_call(struct user_regs_struct *registers, uint64_t address, long number, const uint64_t words[6]) {
  memcpy(registers->regs, words, 6 * sizeof *words);
  registers->regs[8] = (uint64_t)number;
  registers->pc = address;
  registers->pstate &= ~BRANCH_TYPE;
}

long arch_result(const struct user_regs_struct *registers) { return (long)registers->regs[0]; }

// --- The state beside the registers: what ptrace(2) calls register sets ---

#ifndef NT_ARM_SSVE
#define NT_ARM_SSVE 0x40b
#define NT_ARM_ZA 0x40c
#endif
#ifndef NT_ARM_FPMR
#define NT_ARM_FPMR 0x40e
#endif
#ifndef NT_ARM_GCS
#define NT_ARM_GCS 0x410
#endif
#define TAG_CHECKS (PR_MTE_TCF_SYNC | PR_MTE_TCF_ASYNC)

// In the order in which they are set: SVE's registers, if they are in use, have the others in their lower halves.
static const unsigned SETS[] = {NT_PRFPREG,           NT_ARM_SVE,
                                NT_ARM_TLS,           NT_ARM_PACA_KEYS,
                                NT_ARM_PACG_KEYS,     NT_ARM_PAC_ENABLED_KEYS,
                                NT_ARM_TAGGED_ADDR_CTRL, NT_ARM_FPMR};

// Before each in a thread's state.
struct set {
  uint32_t kind, bytes;
};

// The bytes of a register set, 0 if this kernel or processor does not have it.
static size_t get_set(pid_t tid, unsigned kind, void *to, size_t room) {
  struct iovec place = {to, room};
  return ptrace(PTRACE_GETREGSET, tid, kind, &place) == 0 ? place.iov_len : 0;
}

static void refuse_state(pid_t tid) {
  union {
    struct user_sve_header header;
    uint64_t words[16 << 10];
  } *found = allocate(sizeof *found);
  if (get_set(tid, NT_ARM_TAGGED_ADDR_CTRL, found, sizeof *found) > 0 && (found->words[0] & TAG_CHECKS))
    fail("the process %d uses memory tags (MTE)", tid);
  if (get_set(tid, NT_ARM_GCS, found, sizeof *found) > 0 && found->words[0] != 0)
    fail("the process %d has a shadow stack (GCS)", tid);
  if ((get_set(tid, NT_ARM_ZA, found, sizeof *found) > 0 && found->header.size > sizeof found->header) ||
      (get_set(tid, NT_ARM_SSVE, found, sizeof *found) > 0 && (found->header.flags & SVE_PT_REGS_MASK) != 0))
    fail("the process %d uses the processor's matrices (SME)", tid);
  free(found);
}

size_t arch_state(pid_t tid, unsigned char *state, size_t room) {
  refuse_state(tid);
  size_t held = 0;
  for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++) {
    struct set set = {.kind = SETS[i]};
    if (room - held < sizeof set) fail("the extended state of %d is too long", tid);
    size_t bytes = get_set(tid, set.kind, state + held + sizeof set, room - held - sizeof set);
    if (bytes == 0 && i == 0) fail_errno("the extended state of %d cannot be read", tid);
    if (bytes == 0) continue;
    set.bytes = (uint32_t)bytes;
    memcpy(state + held, &set, sizeof set);
    held += sizeof set + bytes;
  }
  return held;
}

bool arch_set_state(pid_t tid, const unsigned char *state, size_t bytes) {
  while (bytes > 0) {
    struct set set;
    errno = EINVAL;
    if (bytes < sizeof set) return false;
    memcpy(&set, state, sizeof set);
    if (set.bytes > bytes - sizeof set) return false;
    struct iovec place = {(void *)(uintptr_t)(state + sizeof set), set.bytes};
    if (ptrace(PTRACE_SETREGSET, tid, set.kind, &place)) return false;
    state += sizeof set + set.bytes;
    bytes -= sizeof set + set.bytes;
  }
  return true;
}

// --- Interrupted calls. The kernel has already made the registers those of a thread that is about to make one again ---

static uint32_t code_at(const struct traced *process, uint64_t address) {
  uint32_t code = 0;
  return pread(process->memory, &code, sizeof code, (off_t)address) == sizeof code ? code : 0;
}

static bool is_at_call(const struct traced *process, const struct user_regs_struct *registers) {
  return code_at(process, registers->pc) == SVC;
}

// Those of which the kernel keeps how much is left.
static bool sleeps(uint64_t number) { return number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_futex; }

// The number that was put into x8 just before the call at an address; 0: it is not to be seen there.
static uint64_t number_in_code(const struct traced *process, uint64_t address) {
  for (uint64_t back = 4; back <= 64; back += 4) {
    uint32_t code = code_at(process, address - back);
    uint64_t number = code >> 5 & 0xffff;
    // movz w8 or x8
    if ((code & 0x7fe0001f) == 0x52800008 && sleeps(number)) return number;
  }
  return 0;
}

struct user_regs_struct arch_carried(const struct traced *process, const struct user_regs_struct *registers) {
  struct user_regs_struct carried = *registers;
  if (registers->regs[8] != SYS_restart_syscall || !is_at_call(process, registers)) return carried;
  uint64_t number = number_in_code(process, registers->pc);
  // Without it, the program is told that a signal came.
  if (number != 0) carried.regs[8] = number;
  return carried;
}

struct user_regs_struct arch_restored(const struct user_regs_struct *carried) { return *carried; }

#define NO_CALL (-1)
#define ERESTARTSYS (-512)
#define ERESTARTNOHAND (-514)
#define ERESTART_RESTARTBLOCK (-516)

// Only the kernel knows whether a sleep goes on or begins. It is let go on up to that call, which is not made.
struct user_regs_struct arch_resumed(const struct traced *process, pid_t tid, const struct user_regs_struct *registers) {
  struct user_regs_struct resumed = *registers;
  if (!sleeps(registers->regs[8]) || !is_at_call(process, registers)) return resumed;
  trace_to_call(tid);
  struct user_regs_struct entering;
  trace_registers(tid, &entering);
  int none = NO_CALL;
  struct iovec place = {&none, sizeof none};
  if (ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &place)) fail_errno("a call of %d cannot be held back", tid);
  trace_to_call(tid);
  if (entering.regs[8] == SYS_restart_syscall) resumed.regs[8] = SYS_restart_syscall;
  return resumed;
}

// What an interrupted call leaves, from which the kernel knows what a signal makes of it: the call is made again, or fails
// with EINTR. 0: it is none that waits.
static long left_by(uint64_t number) {
  switch (number) {
    case SYS_restart_syscall:
      return ERESTART_RESTARTBLOCK;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_rt_sigsuspend:
      return ERESTARTNOHAND;
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_openat:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_futex:
    case SYS_flock:
    case SYS_fcntl:
      return ERESTARTSYS;
    default:
      return 0;
  }
}

// A stop at a call of the kernel does not take the register x7, and a call loses what SVE's registers have. A thread that
// is about to make a call that waits gets, as far as the kernel knows, back from it: by one with the same first word.
void arch_put_back(const struct traced *process, pid_t tid, const struct user_regs_struct *registers,
                   const unsigned char *state, size_t bytes) {
  struct user_regs_struct last = *registers;
  long left = is_at_call(process, registers) ? left_by(registers->regs[8]) : 0;
  if (left != 0) {
    trace_call(process, tid, SYS_getpid, registers->regs[0], 0, 0, 0, 0, 0);
    last.pc += sizeof arch_syscall;
  }
  last.regs[0] = (uint64_t)left;
  trace_set_registers(tid, &last);
  trace_stop_again(tid);
  if (!arch_set_state(tid, state, bytes)) fail_errno("the extended state of %d cannot be set", tid);
  trace_set_registers(tid, registers);
}

uint64_t arch_processor(void) {
  uint64_t words[] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2), 0};
  // The longest vectors that it has.
  int before = prctl(PR_SVE_GET_VL), most = before < 0 ? -1 : prctl(PR_SVE_SET_VL, PR_SVE_VL_LEN_MASK & ~15L);
  if (most >= 0) words[2] = (uint64_t)(most & PR_SVE_VL_LEN_MASK);
  if (before >= 0) prctl(PR_SVE_SET_VL, (long)(before & PR_SVE_VL_LEN_MASK));
  return hash_more(hash_start(), words, sizeof words);
}
