#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"
#include "writer.h"

static int64_t modified(const struct stat *found) {
  return (int64_t)found->st_mtim.tv_sec * 1000000000 + found->st_mtim.tv_nsec;
}

static bool is_among(const char *name, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static void write_entry(uint32_t kind, const char *name, const struct stat *found, uint64_t content, const void *added,
                        size_t added_bytes) {
  struct image_file file = {.kind = kind,
                            .mode = found->st_mode & 07777,
                            .modified = modified(found),
                            .name_bytes = strlen(name),
                            .content_bytes = content};
  writer_section(SECTION_FILE, sizeof file + file.name_bytes + added_bytes);
  writer_add(&file, sizeof file);
  writer_add(name, file.name_bytes);
  writer_add(added, added_bytes);
}

struct image_block *write_file_blocks(int file, const char *name, uint64_t bytes, size_t *count) {
  static unsigned char buffer[BATCH * BLOCK];
  struct image_block *blocks = allocate((bytes / BLOCK + 1) * sizeof *blocks);
  *count = 0;
  for (uint64_t done = 0; done < bytes;) {
    uint64_t wanted = bytes - done < sizeof buffer ? bytes - done : sizeof buffer, held = 0;
    while (held < wanted) {
      ssize_t got = pread(file, buffer + held, wanted - held, (off_t)(done + held));
      if (got <= 0) fail("the file %s changed while it was read", name);
      held += (uint64_t)got;
    }
    struct piece pieces[BATCH];
    size_t some = 0;
    for (uint64_t at = 0; at < held; at += BLOCK)
      pieces[some++] = (struct piece){buffer + at, held - at < BLOCK ? held - at : BLOCK};
    writer_blocks(pieces, some, blocks + *count);
    *count += some;
    done += held;
  }
  return blocks;
}

static void write_regular(int file, const char *name, const struct stat *found) {
  size_t count;
  struct image_block *blocks = write_file_blocks(file, name, (uint64_t)found->st_size, &count);
  write_entry('f', name, found, (uint64_t)found->st_size, blocks, count * sizeof *blocks);
  free(blocks);
}

static void write_directory(int directory, const char *above, const char *const *skip, size_t skips) {
  DIR *entries = fdopendir(directory);
  if (!entries) fail_errno("the directory %s cannot be read", above);
  for (struct dirent *entry; (entry = readdir(entries));) {
    const char *last = entry->d_name;
    if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0 || is_among(last, skip, skips)) continue;
    char *name = *above ? printed("%s/%s", above, last) : printed("%s", last);
    struct stat found;
    if (fstatat(directory, last, &found, AT_SYMLINK_NOFOLLOW)) fail_errno("the file %s cannot be read", name);
    if (S_ISLNK(found.st_mode)) {
      char target[4096];
      ssize_t length = readlinkat(directory, last, target, sizeof target);
      if (length <= 0) fail_errno("the link %s cannot be read", name);
      write_entry('l', name, &found, (uint64_t)length, target, (size_t)length);
    } else if (S_ISDIR(found.st_mode)) {
      int below = openat(directory, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (below < 0) fail_errno("the directory %s cannot be read", name);
      write_entry('d', name, &found, 0, NULL, 0);
      write_directory(below, name, NULL, 0);
    } else if (S_ISREG(found.st_mode)) {
      int file = openat(directory, last, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
      if (file < 0 || fstat(file, &found)) fail_errno("the file %s cannot be read", name);
      write_regular(file, name, &found);
      close(file);
    } else if (S_ISFIFO(found.st_mode)) {
      write_entry('p', name, &found, 0, NULL, 0);
    }
    free(name);
  }
  closedir(entries);
}

void write_files(const struct request *request) {
  int sandbox = open(request->sandbox, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (sandbox < 0) fail_errno("the sandbox %s cannot be read", request->sandbox);
  write_directory(sandbox, "", request->skip, request->skips);
}

static void empty(int directory, const char *const *keep, size_t keeps) {
  DIR *entries = fdopendir(directory);
  if (!entries) fail_errno("the sandbox cannot be read");
  for (struct dirent *entry; (entry = readdir(entries));) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_among(name, keep, keeps)) continue;
    if (unlinkat(directory, name, 0) == 0) continue;
    int below = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0) empty(below, NULL, 0);
    if (unlinkat(directory, name, AT_REMOVEDIR)) fail_errno("%s cannot be removed from the sandbox", name);
  }
  closedir(entries);
}

// The directory in which a name is, with each step taken without following a link.
static int parent_of(int sandbox, const char *name, const char **last) {
  int at = openat(sandbox, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (const char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
    char *part = strndup(name, (size_t)(slash - name));
    if (!part) fail("out of memory");
    int below = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    free(part);
    close(at);
    at = below;
  }
  if (at < 0) fail_errno("the directory of %s cannot be opened", name);
  *last = name;
  return at;
}

static void restore_one(const struct image *image, int sandbox, const struct read_file *one) {
  const char *last;
  int parent = parent_of(sandbox, one->name, &last);
  mode_t mode = one->file.mode;
  int failed = -1;
  if (one->file.kind == 'd') {
    failed = mkdirat(parent, last, 0700);
  } else if (one->file.kind == 'p') {
    failed = mkfifoat(parent, last, 0600) || fchmodat(parent, last, mode, 0);
  } else if (one->file.kind == 'l') {
    failed = symlinkat(one->target, parent, last);
  } else {
    int file = openat(parent, last, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0) {
      failed = !write_content_to(file, image, &one->content) || fchmod(file, mode);
      close(file);
    }
  }
  if (failed) fail_errno("the file %s cannot be restored", one->name);
  close(parent);
}

// Last, since writing into a directory changes it.
static void restore_time(int sandbox, const struct read_file *one) {
  const char *last;
  int parent = parent_of(sandbox, one->name, &last);
  int64_t seconds = one->file.modified / 1000000000, nanoseconds = one->file.modified % 1000000000;
  struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = seconds, .tv_nsec = nanoseconds}};
  if (nanoseconds >= 0) utimensat(parent, last, times, AT_SYMLINK_NOFOLLOW);
  if (one->file.kind == 'd') {
    int directory = openat(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0 || fchmod(directory, one->file.mode)) fail_errno("the directory %s cannot be restored", one->name);
    close(directory);
  }
  close(parent);
}

void restore_files(const struct image *image, int sandbox, const char *const *keep, size_t keeps) {
  int directory = openat(sandbox, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) fail_errno("the sandbox cannot be read");
  empty(directory, keep, keeps);
  umask(0);
  for (size_t i = 0; i < image->file_count; i++) restore_one(image, sandbox, &image->sandbox_files[i]);
  for (size_t i = image->file_count; i-- > 0;) restore_time(sandbox, &image->sandbox_files[i]);
}
