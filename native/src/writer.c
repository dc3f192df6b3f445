#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "image.h"
#include "say.h"

static struct {
  char *path, *fresh;
  int file;
  uint64_t body, hash, left;
  size_t held;
} out = {.file = -1};
static unsigned char buffer[1 << 20];

static void put(const void *bytes, size_t length, off_t at) {
  while (length > 0) {
    ssize_t done = pwrite(out.file, bytes, length, at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail_errno("the image %s cannot be written", out.fresh);
    bytes = (const char *)bytes + done;
    at += done;
    length -= (size_t)done;
  }
}

void writer_open(const char *path) {
  out.path = printed("%s", path);
  out.fresh = printed("%s.new", path);
  unlink(out.fresh);
  out.file = open(out.fresh, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (out.file < 0) fail_errno("the image %s cannot be created", out.fresh);
  out.hash = hash_start();
}

static void flush(void) {
  out.hash = hash_more(out.hash, buffer, out.held);
  put(buffer, out.held, (off_t)(sizeof(struct image_header) + out.body));
  out.body += out.held;
  out.held = 0;
}

static void append(const void *bytes, size_t length) {
  while (length > 0) {
    size_t some = sizeof buffer - out.held;
    if (some > length) some = length;
    memcpy(buffer + out.held, bytes, some);
    out.held += some;
    bytes = (const char *)bytes + some;
    length -= some;
    if (out.held == sizeof buffer) flush();
  }
}

void writer_section(uint32_t kind, uint64_t length) {
  if (out.left != 0) fail("a section is incomplete");
  append(&(struct section){.kind = kind, .length = length}, sizeof(struct section));
  out.left = length;
}

void writer_add(const void *bytes, size_t length) {
  if (length > out.left) fail("a section is too long");
  append(bytes, length);
  out.left -= length;
  static const char zeros[8];
  if (out.left == 0 && out.held % 8 != 0) append(zeros, 8 - out.held % 8);
}

uint64_t writer_close(void) {
  writer_section(SECTION_END, 0);
  flush();
  struct image_header header = {.version = IMAGE_VERSION, .machine = IMAGE_X86_64, .body = out.body, .hash = out.hash};
  memcpy(header.magic, IMAGE_MAGIC, sizeof header.magic);
  put(&header, sizeof header, 0);
  if (fsync(out.file)) fail_errno("the image %s cannot be written", out.fresh);
  close(out.file);
  out.file = -1;
  if (rename(out.fresh, out.path)) fail_errno("the image %s cannot be named", out.path);
  char *copy = printed("%s", out.path);
  int directory = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
  return sizeof header + out.body;
}

void writer_abandon(void) {
  if (out.file < 0) return;
  close(out.file);
  out.file = -1;
  unlink(out.fresh);
}
