#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "arch.h"
#include "job.h"
#include "parallel.h"
#include "restore.h"
#include "say.h"

// The first page holds the system call by which we work, the others our data.
#define WORKSHOP_BYTES (3 * PAGE)
#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

// A process that is being rebuilt.
struct site {
  const struct restoring *restoring;
  const struct read_process *process;
  struct traced traced;
  uint64_t workshop, data;
  struct proc_map *maps;
  size_t map_count;
  int program;
};

static struct {
  pid_t *tids;
  size_t count;
} stopped;

static void note(pid_t tid) {
  stopped.tids = grown(stopped.tids, stopped.count, sizeof *stopped.tids);
  stopped.tids[stopped.count++] = tid;
}

static long call(const struct site *site, pid_t tid, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 uint64_t e, uint64_t f) {
  return trace_call(&site->traced, tid, number, a, b, c, d, e, f);
}

static long call_first(const struct site *site, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                       uint64_t f) {
  return call(site, site->traced.pid, number, a, b, c, d, e, f);
}

static void give(const struct site *site, const void *bytes, size_t length) {
  trace_write(&site->traced, site->data, bytes, length);
}

static bool is_kernels(const struct proc_map *map) {
  return strcmp(map->name, "[vdso]") == 0 || strncmp(map->name, "[vvar", 5) == 0;
}

// An address where nothing is now, and nothing will be.
static uint64_t free_place(const struct site *site, uint64_t bytes, uint64_t from) {
  for (uint64_t at = from;; at += 16 * PAGE) {
    if (at + bytes >= USER_END) fail("the process has no free memory");
    bool taken = false;
    for (size_t i = 0; i < site->map_count; i++) taken |= at < site->maps[i].end && at + bytes > site->maps[i].start;
    for (size_t i = 0; i < site->process->map_count; i++) {
      const struct image_map *map = &site->process->maps[i].map;
      taken |= at < map->end && at + bytes > map->start;
    }
    if (!taken) return at;
  }
}

static void open_workshop(struct site *site) {
  uint64_t at = free_place(site, WORKSHOP_BYTES, 16 * PAGE);
  long made = call_first(site, SYS_mmap, at, WORKSHOP_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
  if (made != (long)at) fail("no room to work can be made (%ld)", made);
  trace_write(&site->traced, at, arch_syscall, arch_syscall_bytes);
  site->traced.syscall = site->workshop = at;
  site->data = at + PAGE;
}

static void clear(const struct site *site) {
  struct __ptrace_rseq_configuration rseq = {0};
  pid_t pid = site->traced.pid;
  if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, pid, sizeof rseq, &rseq) > 0 && rseq.rseq_abi_pointer != 0)
    call_first(site, SYS_rseq, rseq.rseq_abi_pointer, rseq.rseq_abi_size, 1, rseq.signature, 0, 0);
  for (size_t i = 0; i < site->map_count; i++) {
    const struct proc_map *map = &site->maps[i];
    if (is_kernels(map)) continue;
    if (call_first(site, SYS_munmap, map->start, map->end - map->start, 0, 0, 0, 0) != 0)
      fail("memory at %lx cannot be given back", map->start);
  }
}

static void move(const struct site *site, uint64_t from, uint64_t to, uint64_t bytes) {
  long at = call_first(site, SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to, 0);
  if (at != (long)to) fail("the kernel's code cannot be moved to %lx (%ld)", to, at);
}

// Brings vdso and vvar to where the program found them, by way of a place that is in nobody's way.
static void move_vdso(const struct site *site) {
  uint64_t here = 0, end = 0, there = 0;
  for (size_t i = 0; i < site->map_count; i++) {
    if (!is_kernels(&site->maps[i])) continue;
    if (here == 0) here = site->maps[i].start;
    end = site->maps[i].end;
  }
  for (size_t i = site->process->map_count; i-- > 0;)
    if (site->process->maps[i].map.kind == MAP_OF_KERNEL) there = site->process->maps[i].map.start;
  if (there == 0 || there == here) return;
  uint64_t between = free_place(site, end - here, 1UL << 32);
  for (size_t i = 0; i < site->map_count; i++) {
    const struct proc_map *map = &site->maps[i];
    if (is_kernels(map)) move(site, map->start, between + (map->start - here), map->end - map->start);
  }
  for (size_t i = 0; i < site->map_count; i++) {
    const struct proc_map *map = &site->maps[i];
    if (is_kernels(map)) move(site, between + (map->start - here), there + (map->start - here), map->end - map->start);
  }
}

static void map_shared_file(const struct site *site, const struct read_map *one) {
  const struct image_map *map = &one->map;
  char *path = printed("%s/%s", site->restoring->sandbox, one->path);
  give(site, path, strlen(path) + 1);
  int flags = (map->protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC;
  long file = call_first(site, SYS_openat, (uint64_t)AT_FDCWD, site->data, (uint64_t)flags, 0, 0, 0);
  if (file < 0) fail("the file %s, which is mapped, cannot be opened (%ld)", path, file);
  long at = call_first(site, SYS_mmap, map->start, map->end - map->start, map->protection, MAP_SHARED | MAP_FIXED,
                       (uint64_t)file, map->offset);
  if (at != (long)map->start) fail("the file %s cannot be mapped (%ld)", path, at);
  call_first(site, SYS_close, (uint64_t)file, 0, 0, 0, 0, 0);
  free(path);
}

static void write_pages(size_t index, void *with) {
  const struct site *site = with;
  const struct image_pages *pages = &site->process->pages[index];
  unsigned char bytes[BLOCK];
  read_block(site->restoring->image, &pages->block, bytes);
  trace_write(&site->traced, pages->address, bytes, pages->block.bytes);
}

static void map_memory(const struct site *site) {
  const struct read_process *process = site->process;
  for (size_t i = 0; i < process->map_count; i++) {
    const struct image_map *map = &process->maps[i].map;
    if (map->kind == MAP_OF_KERNEL) continue;
    if (map->kind == MAP_OF_SHARED_FILE) {
      map_shared_file(site, &process->maps[i]);
      continue;
    }
    uint64_t flags = MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    flags |= map->kind == MAP_OF_SHARED ? MAP_SHARED : MAP_PRIVATE;
    if (map->kind == MAP_OF_STACK) flags |= MAP_GROWSDOWN;
    long at = call_first(site, SYS_mmap, map->start, map->end - map->start, PROT_READ | PROT_WRITE, flags, (uint64_t)-1, 0);
    if (at != (long)map->start) fail("memory at %lx cannot be made (%ld)", map->start, at);
  }
  in_parallel(process->page_count, write_pages, (void *)(uintptr_t)site);
  for (size_t i = 0; i < process->map_count; i++) {
    const struct image_map *map = &process->maps[i].map;
    bool done = map->kind == MAP_OF_KERNEL || map->kind == MAP_OF_SHARED_FILE;
    if (done || map->protection == (PROT_READ | PROT_WRITE)) continue;
    if (call_first(site, SYS_mprotect, map->start, map->end - map->start, map->protection, 0, 0, 0) != 0)
      fail("memory at %lx cannot be protected", map->start);
  }
}

// What others see of its environment, by which they know whose it is. Its own variables stay as they are.
static void show_environment(const struct site *site, struct prctl_mm_map *map) {
  const char *text = site->restoring->environment;
  size_t bytes = text ? strlen(text) + 1 : 0;
  if (bytes == 0 || bytes > PAGE) return;
  uint64_t at = free_place(site, PAGE, 16 * PAGE + WORKSHOP_BYTES);
  long made = call_first(site, SYS_mmap, at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                         (uint64_t)-1, 0);
  if (made != (long)at) return;
  trace_write(&site->traced, at, text, bytes);
  map->env_start = at;
  map->env_end = at + bytes;
}

static void set_layout(const struct site *site) {
  const struct image_layout *layout = &site->process->process.layout;
  struct prctl_mm_map map = {.start_code = layout->start_code, .end_code = layout->end_code,
                             .start_data = layout->start_data, .end_data = layout->end_data,
                             .start_brk = layout->start_brk,   .brk = layout->brk,
                             .start_stack = layout->start_stack, .arg_start = layout->arg_start,
                             .arg_end = layout->arg_end,       .env_start = layout->env_start,
                             .env_end = layout->env_end,       .exe_fd = (uint32_t)site->program};
  show_environment(site, &map);
  give(site, &map, sizeof map);
  long said = call_first(site, SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, site->data, sizeof map, 0, 0);
  if (said != 0 && site->program >= 0) {
    // It is not permitted everywhere to say which program it is.
    map.exe_fd = (uint32_t)-1;
    give(site, &map, sizeof map);
    said = call_first(site, SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, site->data, sizeof map, 0, 0);
  }
  if (said != 0) fail("the layout of the memory cannot be restored (%ld)", said);
  if (site->program >= 0) call_first(site, SYS_close, (uint64_t)site->program, 0, 0, 0, 0, 0);
}

// Last of what has to do with its files: closing one gives up all its locks on it.
static void take_locks(const struct site *site) {
  const struct read_process *process = site->process;
  for (size_t i = 0; i < process->lock_count; i++) {
    struct flock range = lock_range(&process->locks[i]);
    give(site, &range, sizeof range);
    long said = call_first(site, SYS_fcntl, (uint64_t)process->locks[i].fd, F_SETLK, site->data, 0, 0, 0);
    if (said != 0) fail("the lock of file descriptor %d cannot be taken again (%ld)", process->locks[i].fd, said);
  }
}

static void set_actions(const struct site *site) {
  const struct image_process *is = &site->process->process;
  for (int number = 1; number <= 64; number++) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    give(site, &is->actions[number - 1], sizeof *is->actions);
    call_first(site, SYS_rt_sigaction, (uint64_t)number, site->data, 0, 8, 0, 0);
  }
}

static pid_t add_thread(const struct site *site, pid_t number) {
  pid_t pid = site->traced.pid;
  struct clone_args how = {.flags = THREAD_FLAGS};
  if (site->restoring->exact) {
    how.set_tid = site->data + sizeof how;
    how.set_tid_size = 1;
  }
  struct {
    struct clone_args how;
    pid_t number;
  } all = {how, number};
  give(site, &all, sizeof all);
  long made = call_first(site, SYS_clone3, site->data, sizeof how, 0, 0, 0, 0);
  if (made <= 0) fail("no thread with the number %d can be made (%ld)", number, made);
  pid_t tid = trace_made;
  int status;
  while (waitpid(tid, &status, __WALL) < 0)
    if (errno != EINTR) fail_errno("a thread of process %d cannot be waited for", pid);
  note(tid);
  trace_options(tid, true);
  return tid;
}

static void set_thread(const struct site *site, const struct image_thread *thread, pid_t tid) {
  trace_set_mask(tid, MASK_ALL);
  if (!(thread->stack_flags & SS_DISABLE)) {
    stack_t stack = {.ss_sp = (void *)thread->stack, .ss_flags = (int)thread->stack_flags & ~SS_ONSTACK, .ss_size = thread->stack_bytes};
    give(site, &stack, sizeof stack);
    call(site, tid, SYS_sigaltstack, site->data, 0, 0, 0, 0, 0);
  }
  if (thread->robust_list != 0)
    call(site, tid, SYS_set_robust_list, thread->robust_list, thread->robust_list_bytes, 0, 0, 0, 0);
  call(site, tid, SYS_set_tid_address, thread->tid_address, 0, 0, 0, 0, 0);
  if (!site->restoring->exact && thread->tid_address != 0) {
    // The C library keeps the number where the kernel is to clear it.
    int32_t known = 0, now = tid;
    trace_read(&site->traced, thread->tid_address, &known, sizeof known);
    if (known == thread->tid) trace_write(&site->traced, thread->tid_address, &now, sizeof now);
  }
  if (thread->rseq != 0 &&
      call(site, tid, SYS_rseq, thread->rseq, thread->rseq_bytes, 0, thread->rseq_signature, 0, 0) != 0)
    fail("restartable sequences cannot be restored");
  give(site, thread->name, sizeof thread->name);
  call(site, tid, SYS_prctl, PR_SET_NAME, site->data, 0, 0, 0, 0);
}

static void send_signals(const struct site *site, const pid_t *tids) {
  const struct read_process *process = site->process;
  bool exact = site->restoring->exact;
  uint64_t pid = (uint64_t)(exact ? process->process.pid : site->traced.pid);
  for (size_t i = 0; i < process->signal_count; i++) {
    const struct image_signal *signal = &process->signals[i];
    give(site, &signal->info, sizeof signal->info);
    uint64_t number = (uint64_t)signal->info.si_signo;
    if (signal->tid == 0) call_first(site, SYS_rt_sigqueueinfo, pid, number, site->data, 0, 0, 0);
    for (size_t k = 0; k < process->thread_count; k++) {
      if (signal->tid != process->threads[k].thread.tid) continue;
      uint64_t tid = (uint64_t)(exact ? signal->tid : tids[k]);
      call(site, tids[k], SYS_rt_tgsigqueueinfo, pid, tid, number, site->data, 0, 0);
    }
  }
}

static void set_registers(const struct traced *traced, const struct read_thread *one, pid_t tid) {
  const struct image_thread *thread = &one->thread;
  if (!arch_set_state(tid, one->state, thread->state_bytes)) fail_errno("the extended state cannot be restored on this processor");
  struct user_regs_struct registers = arch_restored(&thread->regs);
  arch_put_back(traced, tid, &registers, one->state, thread->state_bytes);
  trace_set_mask(tid, thread->signal_mask);
}

static void give_up_rights(const struct site *site, pid_t tid) {
  struct {
    struct __user_cap_header_struct header;
    struct __user_cap_data_struct none[2];
  } all = {.header = {.version = _LINUX_CAPABILITY_VERSION_3}};
  give(site, &all, sizeof all);
  if (call(site, tid, SYS_capset, site->data, site->data + sizeof all.header, 0, 0, 0, 0) != 0)
    fail("the process cannot give up its rights in its namespace");
}

void rebuild(const struct restoring *restoring, size_t index, pid_t pid) {
  struct site site = {.restoring = restoring,
                      .process = &restoring->image->processes[index],
                      .program = restoring->programs[index]};
  const struct read_process *process = site.process;
  if (!trace_stop(pid, pid, RESTORE_SECONDS)) fail("the process %d ended before it was restored", pid);
  note(pid);
  trace_options(pid, true);
  trace_open(&site.traced, pid);
  site.maps = proc_maps(pid, &site.map_count);
  trace_set_mask(pid, MASK_ALL);
  open_workshop(&site);
  clear(&site);
  move_vdso(&site);
  map_memory(&site);
  set_layout(&site);
  take_locks(&site);
  set_actions(&site);
  pid_t *tids = allocate(process->thread_count * sizeof *tids);
  for (size_t i = 0; i < process->thread_count; i++) {
    tids[i] = i == 0 ? pid : add_thread(&site, process->threads[i].thread.tid);
    set_thread(&site, &process->threads[i].thread, tids[i]);
  }
  const struct image_process *is = &process->process;
  if (is->group != 0 && is->group != is->pid) call_first(&site, SYS_setpgid, 0, (uint64_t)is->group, 0, 0, 0, 0);
  for (uint64_t which = 0; which < 3; which++) {
    if (is->timers[which].value_s == 0 && is->timers[which].value_us == 0) continue;
    give(&site, &is->timers[which], sizeof is->timers[which]);
    call_first(&site, SYS_setitimer, which, site.data, 0, 0, 0, 0);
  }
  send_signals(&site, tids);
  for (size_t i = 0; restoring->bounded && i < process->thread_count; i++) give_up_rights(&site, tids[i]);
  // The last call is made from the vdso, which is where it was when the program was interrupted.
  uint64_t workshop = site.workshop;
  trace_open(&site.traced, pid);
  call_first(&site, SYS_munmap, workshop, WORKSHOP_BYTES, 0, 0, 0, 0);
  for (size_t i = 0; i < process->thread_count; i++) set_registers(&site.traced, &process->threads[i], tids[i]);
  free(tids);
}

void release(void) {
  for (size_t i = 0; i < stopped.count; i++) ptrace(PTRACE_SETOPTIONS, stopped.tids[i], 0, 0);
  // Those that go on already may end the others.
  for (size_t i = stopped.count; i-- > 0;)
    if (ptrace(PTRACE_DETACH, stopped.tids[i], 0, 0) && errno != ESRCH)
      fail_errno("the process %d cannot be let go", stopped.tids[i]);
}
