#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "restore.h"
#include "say.h"

// What open(2) may be given again.
#define FLAGS (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECTORY | O_SYNC | O_DSYNC | O_PATH)

static int open_below(int directory, const char *path, int flags) {
  struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

static int open_elsewhere(const struct read_description *one, int flags) {
  const struct image_description *is = &one->description;
  int file = open(one->path, flags | O_NOCTTY);
  struct stat found;
  if (file < 0 || fstat(file, &found)) fail_errno("the file %s, which the job reads, cannot be opened", one->path);
  int64_t modified = (int64_t)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec;
  if (S_ISREG(found.st_mode) && ((uint64_t)found.st_size != is->size || modified != is->modified))
    fail("the file %s, which the job reads, has changed since the checkpoint", one->path);
  return file;
}

static void fill(int file, const struct image *image, const struct content *content) {
  if (!write_content_to(file, image, content)) fail_errno("an unlinked file or a pipe cannot be filled");
}

static int open_again(int file, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return open(path, flags);
}

static int open_unlinked(const struct image *image, int sandbox, const struct read_description *one, int flags) {
  int file = openat(sandbox, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {
    const char *name = ".gryphus-unlinked";
    file = openat(sandbox, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    unlinkat(sandbox, name, 0);
  }
  if (file < 0) fail_errno("an unlinked file cannot be made");
  fill(file, image, &one->content);
  int again = open_again(file, flags);
  close(file);
  return again;
}

// The pipes that have been made.
static int (*ends)[2];
static uint64_t *pipes;
static size_t count;

static int open_pipe(const struct image *image, const struct read_description *one, int flags) {
  size_t k = 0;
  while (k < count && pipes[k] != one->description.pipe) k++;
  if (k == count) {
    ends = grown(ends, k, sizeof *ends);
    pipes = grown(pipes, k, sizeof *pipes);
    pipes[k] = one->description.pipe;
    if (pipe2(ends[k], O_CLOEXEC)) fail_errno("no pipe can be made");
    count++;
  }
  if ((flags & O_ACCMODE) == O_RDONLY && one->content.bytes > 0) {
    fcntl(ends[k][1], F_SETPIPE_SZ, (int)one->description.size);
    fcntl(ends[k][1], F_SETFL, O_NONBLOCK);
    fill(ends[k][1], image, &one->content);
    fcntl(ends[k][1], F_SETFL, 0);
  }
  return open_again(ends[k][(flags & O_ACCMODE) == O_WRONLY], flags);
}

static int open_one(const struct image *image, const struct read_description *one, int sandbox) {
  int flags = (int)(one->description.flags & FLAGS) | O_CLOEXEC;
  switch (one->description.kind) {
    case OPEN_SANDBOX:
      return open_below(sandbox, one->path, flags);
    case OPEN_ELSEWHERE:
      return open_elsewhere(one, flags);
    case OPEN_DEVICE:
      return open(one->path, flags | O_NOCTTY);
    case OPEN_UNLINKED:
      return open_unlinked(image, sandbox, one, flags);
    case OPEN_PIPE:
      return open_pipe(image, one, flags);
    default:
      return fcntl((int)(one->description.kind - OPEN_STDIN), F_DUPFD_CLOEXEC, 3);
  }
}

struct flock lock_range(const struct image_lock *lock) {
  return (struct flock){.l_type = lock->writes ? F_WRLCK : F_RDLCK,
                        .l_whence = SEEK_SET,
                        .l_start = (off_t)lock->start,
                        .l_len = (off_t)lock->length};
}

static void take_locks(const struct restoring *restoring) {
  for (size_t i = 0; i < restoring->image->lock_count; i++) {
    const struct image_lock *lock = &restoring->image->locks[i];
    int file = restoring->open[lock->description];
    struct flock range = lock_range(lock);
    int said = lock->kind == LOCK_OF_OPEN ? flock(file, (lock->writes ? LOCK_EX : LOCK_SH) | LOCK_NB)
                                          : fcntl(file, F_OFD_SETLK, &range);
    if (said != 0) fail_errno("the lock on %s cannot be taken again", restoring->image->descriptions[lock->description].path);
  }
}

void open_descriptions(struct restoring *restoring, int sandbox) {
  const struct image *image = restoring->image;
  restoring->open = allocate(image->description_count * sizeof *restoring->open);
  for (size_t i = 0; i < image->description_count; i++) {
    const struct read_description *one = &image->descriptions[i];
    int file = open_one(image, one, sandbox);
    if (file < 0) fail_errno("an open file cannot be restored (%s)", *one->path ? one->path : "without a name");
    uint32_t kind = one->description.kind;
    bool seeks = kind == OPEN_SANDBOX || kind == OPEN_ELSEWHERE || kind == OPEN_UNLINKED || kind == OPEN_STDIN;
    if (seeks) lseek(file, (off_t)one->description.position, SEEK_SET);
    // Above what the processes have.
    restoring->open[i] = fcntl(file, F_DUPFD_CLOEXEC, restoring->first_free);
    if (restoring->open[i] < 0) fail_errno("too many files are open");
    close(file);
  }
  take_locks(restoring);
  // An end that the job does not have must be open nowhere.
  for (size_t k = 0; k < count; k++) {
    close(ends[k][0]);
    close(ends[k][1]);
  }
  restoring->programs = allocate(image->process_count * sizeof *restoring->programs);
  for (size_t i = 0; i < image->process_count; i++) {
    const char *path = image->processes[i].program;
    int file = *path == '/' ? open(path, O_RDONLY | O_CLOEXEC) : *path ? open_below(sandbox, path, O_RDONLY | O_CLOEXEC) : -1;
    restoring->programs[i] = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, restoring->first_free);
    if (file >= 0) close(file);
  }
}
