#include "ask.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch.h"
#include "say.h"

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

// What is known without its help, and is not the same after it.
static void read_thread(const struct found_process *process, pid_t tid, struct image_thread *thread, unsigned char *state) {
  trace_registers(tid, &thread->regs);
  thread->state_bytes = (uint32_t)arch_state(tid, state, STATE_ROOM);
  thread->tid = inner_number(process->pid, tid);
  thread->signal_mask = trace_mask(tid);
  struct __ptrace_rseq_configuration rseq = {0};
  if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof rseq, &rseq) > 0) {
    thread->rseq = rseq.rseq_abi_pointer;
    thread->rseq_bytes = rseq.rseq_abi_size;
    thread->rseq_signature = rseq.signature;
  }
  size_t bytes = 0;
  void *list = NULL;
  if (syscall(SYS_get_robust_list, tid, &list, &bytes) == 0) {
    thread->robust_list = (uint64_t)list;
    thread->robust_list_bytes = bytes;
  }
  char name[64];
  snprintf(name, sizeof name, "task/%d/comm", tid);
  char *text = proc_text(process->pid, name);
  if (text) snprintf(thread->name, sizeof thread->name, "%.*s", (int)strcspn(text, "\n"), text);
  free(text);
}

static void ask_thread(const struct traced *traced, pid_t tid, uint64_t scratch, struct image_thread *thread) {
  stack_t stack;
  if (trace_call(traced, tid, SYS_sigaltstack, 0, scratch, 0, 0, 0, 0) == 0) {
    trace_read(traced, scratch, &stack, sizeof stack);
    thread->stack = (uint64_t)stack.ss_sp;
    thread->stack_flags = (uint64_t)(unsigned)stack.ss_flags;
    thread->stack_bytes = stack.ss_size;
  }
  if (trace_call(traced, tid, SYS_prctl, PR_GET_TID_ADDRESS, scratch, 0, 0, 0, 0) != 0)
    fail("this kernel cannot tell what a checkpoint needs (CONFIG_CHECKPOINT_RESTORE)");
  trace_read(traced, scratch, &thread->tid_address, 8);
}

static uint64_t ask_first(const struct traced *traced, pid_t pid, struct image_process *is) {
  long scratch = trace_call(traced, pid, SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                            (uint64_t)-1, 0);
  if (scratch < 0 && scratch > -4096) fail("the process %d has no room for one page", pid);
  for (int number = 1; number <= 64; number++) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    if (trace_call(traced, pid, SYS_rt_sigaction, (uint64_t)number, 0, (uint64_t)scratch, 8, 0, 0) != 0)
      fail("the process %d does not tell its signal actions", pid);
    trace_read(traced, (uint64_t)scratch, &is->actions[number - 1], sizeof *is->actions);
  }
  for (int which = 0; which < 3; which++) {
    trace_call(traced, pid, SYS_getitimer, (uint64_t)which, (uint64_t)scratch, 0, 0, 0, 0);
    trace_read(traced, (uint64_t)scratch, &is->timers[which], sizeof *is->timers);
  }
  crash_point("helper.asking");
  is->layout.brk = (uint64_t)trace_call(traced, pid, SYS_brk, 0, 0, 0, 0, 0, 0);
  return (uint64_t)scratch;
}

void ask_process(struct found_process *process, struct told *told) {
  const struct traced *traced = &process->traced;
  size_t count = process->thread_count;
  const pid_t *tids = process->threads;
  told->threads = allocate(count * sizeof *told->threads);
  told->states = allocate(count * sizeof *told->states);
  told->process.layout = process->stat.layout;
  for (size_t i = 0; i < count; i++) read_thread(process, tids[i], &told->threads[i], told->states[i]);
  for (size_t i = 0; i < count; i++) {
    trace_options(tids[i], true);
    trace_set_mask(tids[i], MASK_ALL);
  }
  struct user_regs_struct *resumed = allocate(count * sizeof *resumed);
  for (size_t i = 0; i < count; i++) {
    resumed[i] = arch_resumed(traced, tids[i], &told->threads[i].regs);
    told->threads[i].regs = arch_carried(traced, &told->threads[i].regs);
  }
  uint64_t scratch = ask_first(traced, process->pid, &told->process);
  for (size_t i = 0; i < count; i++) ask_thread(traced, tids[i], scratch, &told->threads[i]);
  trace_call(traced, process->pid, SYS_munmap, scratch, PAGE, 0, 0, 0, 0);
  for (size_t i = 0; i < count; i++) {
    arch_put_back(traced, tids[i], &resumed[i], told->states[i], told->threads[i].state_bytes);
    trace_set_mask(tids[i], told->threads[i].signal_mask);
    trace_options(tids[i], false);
  }
  free(resumed);
}
