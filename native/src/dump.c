#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ask.h"
#include "files.h"
#include "job.h"
#include "say.h"
#include "writer.h"

static struct job *current;

static void write_text_section(uint32_t kind, const void *fixed, size_t bytes, const char *text) {
  writer_section(kind, bytes + strlen(text));
  writer_add(fixed, bytes);
  writer_add(text, strlen(text));
}

// --- What is in memory ---

static bool is_zero(const unsigned char *page) {
  static const unsigned char zeros[PAGE];
  return memcmp(page, zeros, PAGE) == 0;
}

// Pages on their way into the image: as many blocks as are written at once.
static struct {
  unsigned char bytes[BATCH * BLOCK];
  size_t held;
  struct piece pieces[BATCH];
  struct image_pages pages[BATCH];
  size_t count;
} batch;
// What has been written of a process.
static struct {
  struct image_pages *pages;
  size_t count;
} written;

static void flush_pages(void) {
  struct image_block blocks[BATCH];
  writer_blocks(batch.pieces, batch.count, blocks);
  for (size_t i = 0; i < batch.count; i++) {
    written.pages = grown(written.pages, written.count, sizeof *written.pages);
    batch.pages[i].block = blocks[i];
    written.pages[written.count++] = batch.pages[i];
  }
  batch.held = batch.count = 0;
}

static void add_run(uint64_t address, const unsigned char *bytes, size_t length) {
  if (length == 0) return;
  batch.pieces[batch.count] = (struct piece){bytes, length};
  batch.pages[batch.count++] = (struct image_pages){.address = address};
}

// Adds some pages that are in memory, without those that are zero. Pages that nobody can read are left out. No block
// goes beyond a multiple of its size, so that the next image finds the same blocks.
static void write_range(const struct found_process *process, uint64_t address, size_t pages) {
  while (pages > 0) {
    size_t some = (BLOCK - address % BLOCK) / PAGE;
    if (some > pages) some = pages;
    // Each may be a run of its own.
    if (batch.held + BLOCK > sizeof batch.bytes || batch.count + BLOCK / PAGE > BATCH) flush_pages();
    unsigned char *buffer = batch.bytes + batch.held;
    ssize_t got = pread(process->traced.memory, buffer, some * PAGE, (off_t)address);
    size_t whole = got < 0 ? 0 : (size_t)got / PAGE;
    for (size_t i = 0, from = 0; i <= whole; i++) {
      if (i < whole && !is_zero(buffer + i * PAGE)) continue;
      add_run(address + from * PAGE, buffer + from * PAGE, (i - from) * PAGE);
      from = i + 1;
    }
    batch.held += whole * PAGE;
    // After a page that cannot be read comes the next.
    if (whole < some) whole++;
    address += whole * PAGE;
    pages -= whole;
  }
}

static void write_pages(const struct found_process *process, const struct proc_map *map, int pagemap, bool anonymous) {
  static uint64_t entries[1 << 15];
  uint64_t all = (map->end - map->start) / PAGE;
  for (uint64_t done = 0; done < all;) {
    uint64_t some = all - done < sizeof entries / 8 ? all - done : sizeof entries / 8;
    uint64_t first = map->start + done * PAGE;
    if (pread(pagemap, entries, some * 8, (off_t)(first / PAGE * 8)) != (ssize_t)(some * 8))
      fail_errno("the pages of process %d cannot be listed", process->pid);
    for (uint64_t i = 0; i < some;) {
      uint64_t run = 0;
      // Present or swapped out; the pages of a file are read even if they are in nobody's memory.
      while (i + run < some && (!anonymous || entries[i + run] >> 62)) run++;
      write_range(process, first + i * PAGE, run);
      i += run + 1;
    }
    done += some;
  }
}

static void write_maps(const struct found_process *process) {
  for (size_t i = 0; i < process->map_count; i++) {
    const struct proc_map *map = &process->maps[i];
    const char *reason;
    struct image_map is = {.start = map->start, .end = map->end, .offset = map->offset};
    is.kind = map_kind(current->request, map, &reason);
    const char *p = map->permissions;
    is.protection = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) | (p[2] == 'x' ? PROT_EXEC : 0);
    const char *path = is.kind == MAP_OF_SHARED_FILE ? in_sandbox(current->request, map->name) : "";
    write_text_section(SECTION_MAP, &is, sizeof is, path);
  }
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/pagemap", process->pid);
  int pagemap = open(name, O_RDONLY | O_CLOEXEC);
  if (pagemap < 0) fail_errno("the pages of process %d cannot be listed", process->pid);
  for (size_t i = 0; i < process->map_count; i++) {
    const struct proc_map *map = &process->maps[i];
    const char *reason;
    enum map_kind kind = map_kind(current->request, map, &reason);
    if (kind == MAP_OF_KERNEL || kind == MAP_OF_SHARED_FILE) continue;
    write_pages(process, map, pagemap, map->inode == 0 && kind != MAP_OF_SHARED);
  }
  close(pagemap);
  flush_pages();
  writer_section(SECTION_PAGES, written.count * sizeof *written.pages);
  writer_add(written.pages, written.count * sizeof *written.pages);
  free(written.pages);
  written.pages = NULL;
  written.count = 0;
}

// --- What is open ---

// The bytes in a pipe, which stay there.
static unsigned char *pipe_content(const char *path, const struct proc_fd *fd, uint64_t *room, uint64_t *bytes) {
  *bytes = 0;
  int end = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), copy[2], held = 0;
  if (end < 0) fail_errno("the pipe at file descriptor %d cannot be read", fd->fd);
  int size = fcntl(end, F_GETPIPE_SZ);
  *room = size > 0 ? (uint64_t)size : 0;
  if (ioctl(end, FIONREAD, &held) || held <= 0) {
    close(end);
    return NULL;
  }
  if (pipe2(copy, O_CLOEXEC | O_NONBLOCK)) fail_errno("no pipe can be made");
  fcntl(copy[1], F_SETPIPE_SZ, size);
  unsigned char *content = allocate((size_t)held);
  if (tee(end, copy[1], (size_t)held, SPLICE_F_NONBLOCK) != held) fail("a pipe's content cannot be read");
  while (*bytes < (uint64_t)held) {
    ssize_t got = read(copy[0], content + *bytes, (size_t)held - *bytes);
    if (got <= 0) fail("a pipe's content cannot be read");
    *bytes += (uint64_t)got;
  }
  close(copy[0]);
  close(copy[1]);
  close(end);
  return content;
}

static struct image_block *pipe_blocks(const char *path, const struct proc_fd *fd, struct image_description *is,
                                       size_t *count) {
  unsigned char *content = pipe_content(path, fd, &is->size, &is->content_bytes);
  struct image_block *blocks = allocate((is->content_bytes / BLOCK + 1) * sizeof *blocks);
  for (uint64_t done = 0; done < is->content_bytes; done += BLOCK) {
    uint64_t rest = is->content_bytes - done;
    writer_blocks(&(struct piece){content + done, rest < BLOCK ? rest : BLOCK}, 1, &blocks[(*count)++]);
  }
  free(content);
  return blocks;
}

static void write_description(const struct found_description *one) {
  const struct found_process *process = &current->processes[one->process];
  const struct proc_fd *fd = &process->fds[one->fd];
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", process->pid, fd->fd);
  struct image_description is = {.kind = one->kind,
                                 .flags = fd->flags & ~(uint32_t)O_CLOEXEC,
                                 .position = fd->position,
                                 .size = (uint64_t)fd->found.st_size,
                                 .path_bytes = strlen(one->path)};
  is.modified = (int64_t)fd->found.st_mtim.tv_sec * 1000000000 + fd->found.st_mtim.tv_nsec;
  struct image_block *blocks = NULL;
  size_t count = 0;
  if (one->kind == OPEN_PIPE) {
    is.position = 0;
    is.pipe = fd->found.st_ino;
    if ((fd->flags & O_ACCMODE) == O_RDONLY) blocks = pipe_blocks(path, fd, &is, &count);
  } else if (one->kind == OPEN_UNLINKED) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) fail_errno("file descriptor %d, an unlinked file, cannot be read", fd->fd);
    blocks = write_file_blocks(file, fd->path, is.size, &count);
    is.content_bytes = is.size;
    close(file);
  }
  writer_section(SECTION_DESCRIPTION, sizeof is + is.path_bytes + count * sizeof *blocks);
  writer_add(&is, sizeof is);
  writer_add(one->path, is.path_bytes);
  writer_add(blocks, count * sizeof *blocks);
  free(blocks);
}

// The locks that are seen at a descriptor: those of the process, or those of what open(2) made.
static void write_locks(const struct proc_fd *fd, uint32_t description, bool of_process) {
  for (size_t i = 0; i < fd->lock_count; i++) {
    const struct proc_lock *lock = &fd->locks[i];
    if ((lock->kind == LOCK_OF_PROCESS) != of_process) continue;
    // A process's lock is seen at all its descriptors of the file.
    if (of_process && (fd->flags & O_ACCMODE) == (lock->writes ? O_RDONLY : O_WRONLY)) continue;
    struct image_lock is = {.kind = lock->kind,
                            .writes = lock->writes,
                            .description = description,
                            .fd = fd->fd,
                            .start = lock->start,
                            .length = lock->length};
    writer_section(SECTION_LOCK, sizeof is);
    writer_add(&is, sizeof is);
  }
}

// --- The whole ---

static void write_signals(const struct found_process *process) {
  for (size_t i = 0; i <= process->thread_count; i++) {
    bool all = i == process->thread_count;
    pid_t tid = all ? process->pid : process->threads[i];
    struct __ptrace_peeksiginfo_args ask = {.flags = all ? PTRACE_PEEKSIGINFO_SHARED : 0, .nr = 1};
    struct image_signal is = {.tid = all ? 0 : inner_number(process->pid, tid)};
    for (; ptrace(PTRACE_PEEKSIGINFO, tid, &ask, &is.info) == 1; ask.off++) {
      writer_section(SECTION_SIGNAL, sizeof is);
      writer_add(&is, sizeof is);
    }
  }
}

static int32_t number_of(pid_t outer) {
  for (size_t i = 0; i < current->process_count; i++)
    if (current->processes[i].pid == outer) return current->processes[i].number;
  return 0;
}

static const char *place_of(const char *path) {
  const char *inside = path ? in_sandbox(current->request, path) : NULL;
  return inside ? inside : path ? path : "";
}

static void write_process(struct found_process *process, struct told *told) {
  struct image_process *is = &told->process;
  const char *directory = place_of(process->directory), *program = place_of(process->program);
  is->pid = process->number;
  is->parent = process->parent < 0 ? 0 : current->processes[process->parent].number;
  is->group = number_of(process->stat.group);
  is->session = number_of(process->stat.session);
  is->umask = process->status.umask;
  is->no_new_privileges = (uint32_t)process->status.no_new_privileges;
  is->directory_bytes = strlen(directory);
  is->program_bytes = strlen(program);
  for (int i = 0; i < RLIM_NLIMITS; i++) {
    struct rlimit limit;
    if (prlimit(process->pid, (enum __rlimit_resource)i, NULL, &limit)) fail_errno("the limits of process %d cannot be read", process->pid);
    is->limits[i].soft = limit.rlim_cur;
    is->limits[i].hard = limit.rlim_max;
  }
  writer_section(SECTION_PROCESS, sizeof *is + is->directory_bytes + is->program_bytes);
  writer_add(is, sizeof *is);
  writer_add(directory, is->directory_bytes);
  writer_add(program, is->program_bytes);
  for (size_t i = 0; i < process->fd_count; i++) {
    struct image_fd fd = {.fd = process->fds[i].fd,
                          .description = process->descriptions[i],
                          .close_on_exec = (process->fds[i].flags & O_CLOEXEC) != 0};
    writer_section(SECTION_FD, sizeof fd);
    writer_add(&fd, sizeof fd);
    write_locks(&process->fds[i], fd.description, true);
  }
  for (size_t i = 0; i < process->thread_count; i++) {
    const struct image_thread *thread = &told->threads[i];
    writer_section(SECTION_THREAD, sizeof *thread + thread->state_bytes);
    writer_add(thread, sizeof *thread);
    writer_add(told->states[i], thread->state_bytes);
  }
  write_signals(process);
  write_maps(process);
}

static uint64_t stream_bytes(int which) {
  const char *path = current->request->streams[which];
  struct stat found;
  return path && stat(path, &found) == 0 ? (uint64_t)found.st_size : 0;
}

static void write_job(const struct told *told) {
  struct image_job is = {.processes = (uint32_t)current->process_count,
                         .descriptions = (uint32_t)current->description_count,
                         .state_bytes = told->threads[0].state_bytes};
  const struct found_process *first = &current->processes[0];
  for (size_t i = 0; i < first->map_count; i++) {
    const struct proc_map *map = &first->maps[i];
    const char *reason;
    if (map_kind(current->request, map, &reason) == MAP_OF_KERNEL) is.vdso_bytes += map->end - map->start;
    if (strcmp(map->name, "[vdso]") != 0) continue;
    unsigned char *code = allocate(map->end - map->start);
    trace_read(&first->traced, map->start, code, map->end - map->start);
    is.vdso_hash = hash_more(hash_start(), code, map->end - map->start);
    free(code);
  }
  write_text_section(SECTION_JOB, &is, sizeof is, current->request->sandbox);
}

static void let_go(const struct job *job) {
  for (size_t i = 0; i < job->process_count; i++)
    for (size_t k = 0; k < job->processes[i].thread_count; k++) ptrace(PTRACE_DETACH, job->processes[i].threads[k], 0, 0);
}

// A whole image is there, or the job goes on as if nothing had happened.
uint64_t dump_job(const struct request *request) {
  before_failing = writer_abandon;
  struct job *job = current = collect(request, true);
  if (job->reason_count > 0) fail("%s", job->reasons[0]);
  crash_point("helper.stopped");
  struct told *told = allocate(job->process_count * sizeof *told);
  for (size_t i = 0; i < job->process_count; i++) {
    struct found_process *process = &job->processes[i];
    trace_open(&process->traced, process->pid);
    ask_process(process, &told[i]);
  }
  crash_point("helper.asked");
  uint64_t lengths[] = {stream_bytes(1), stream_bytes(2)};
  writer_open(request->to, request->base ? request->base : request->to);
  write_job(&told[0]);
  write_files(request);
  for (size_t i = 0; i < job->description_count; i++) {
    const struct found_description *one = &job->descriptions[i];
    write_description(one);
    write_locks(&job->processes[one->process].fds[one->fd], (uint32_t)i, false);
  }
  for (size_t i = 0; i < job->process_count; i++) write_process(&job->processes[i], &told[i]);
  crash_point("helper.written");
  // What is in the image cannot change any more, while the disk takes its time.
  if (!request->kill) let_go(job);
  uint64_t bytes = writer_close(lengths[0], lengths[1]);
  crash_point("helper.saved");
  // Nobody may see the first of them end.
  for (size_t i = job->process_count; request->kill && i-- > 0;) kill(job->processes[i].pid, SIGKILL);
  return bytes;
}
