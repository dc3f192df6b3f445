#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "lz.h"
#include "parallel.h"
#include "say.h"

// How often the disk is told to begin.
#define WRITE_BACK (16UL << 20)

static struct {
  char *path, *fresh;
  int file;
  uint64_t end, synced;  // of the blocks in the file
  unsigned char *sections;
  size_t held, room;
  uint64_t left;
  struct bases bases;
  struct known known;
} out = {.file = -1};

static void put(const void *bytes, size_t length, uint64_t at) {
  while (length > 0) {
    ssize_t done = pwrite(out.file, bytes, length, (off_t)at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail_errno("the image %s cannot be written", out.fresh);
    bytes = (const char *)bytes + done;
    at += (uint64_t)done;
    length -= (size_t)done;
  }
}

void writer_open(const char *path, const char *base) {
  choose_bases(base, &out.bases, &out.known);
  out.path = printed("%s", path);
  out.fresh = printed("%s.new", path);
  unlink(out.fresh);
  out.file = open(out.fresh, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (out.file < 0) fail_errno("the image %s cannot be created", out.fresh);
  out.end = sizeof(struct image_header);
}

static void append(const void *bytes, size_t length) {
  if (length > out.room - out.held) {
    while (length > out.room - out.held) out.room = out.room == 0 ? 1 << 16 : out.room * 2;
    out.sections = realloc(out.sections, out.room);
    if (!out.sections) fail("out of memory");
  }
  memcpy(out.sections + out.held, bytes, length);
  out.held += length;
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

struct batch {
  const struct piece *pieces;
  struct image_block *blocks;
  unsigned char (*packed)[BLOCK];
};

static void pack(size_t index, void *with) {
  const struct batch *batch = with;
  const struct piece *piece = &batch->pieces[index];
  struct image_block *block = &batch->blocks[index];
  *block = (struct image_block){.bytes = (uint32_t)piece->length, .stored = (uint32_t)piece->length};
  hash_block(piece->bytes, piece->length, block->hash);
  if (known_find(&out.known, block)) return;
  size_t packed = lz_compress(piece->bytes, piece->length, batch->packed[index], piece->length - piece->length / 8);
  if (packed > 0) block->stored = (uint32_t)packed;
}

void writer_blocks(const struct piece *pieces, size_t count, struct image_block *blocks) {
  static unsigned char packed[BATCH][BLOCK], together[BATCH * BLOCK];
  struct batch batch = {pieces, blocks, packed};
  in_parallel(count, pack, &batch);
  size_t held = 0;
  for (size_t i = 0; i < count; i++) {
    struct image_block *block = &blocks[i];
    const struct image_block *same = known_find(&out.known, block);
    if (same) {
      *block = *same;
      continue;
    }
    block->at = out.end + held;
    memcpy(together + held, block->stored < block->bytes ? packed[i] : pieces[i].bytes, block->stored);
    held += block->stored;
    known_add(&out.known, block);
  }
  put(together, held, out.end);
  out.end += held;
  if (out.end - out.synced < WRITE_BACK) return;
  sync_file_range(out.file, (off_t)out.synced, (off_t)(out.end - out.synced), SYNC_FILE_RANGE_WRITE);
  out.synced = out.end;
}

static void sync_directory(void) {
  char *copy = printed("%s", out.path);
  int directory = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
  free(copy);
}

uint64_t writer_close(uint64_t stdout_bytes, uint64_t stderr_bytes) {
  writer_section(SECTION_END, 0);
  struct image_header header = {.version = IMAGE_VERSION,
                                .machine = IMAGE_MACHINE,
                                .sections_at = out.end,
                                .sections_bytes = out.held,
                                .stdout_bytes = stdout_bytes,
                                .stderr_bytes = stderr_bytes,
                                .base_count = out.bases.count};
  memcpy(header.magic, IMAGE_MAGIC, sizeof header.magic);
  memcpy(header.bases, out.bases.of, sizeof header.bases);
  header.id = hash_more(hash_more(hash_start(), &header, sizeof header), out.sections, out.held);
  put(out.sections, out.held, out.end);
  put(&header, sizeof header, 0);
  if (fsync(out.file)) fail_errno("the image %s cannot be written", out.fresh);
  close(out.file);
  out.file = -1;
  // Its bases are there before it is, and go after it has come.
  name_bases(out.path, &out.bases);
  crash_point("helper.based");
  if (rename(out.fresh, out.path)) fail_errno("the image %s cannot be named", out.path);
  crash_point("helper.named");
  sync_directory();
  drop_bases(out.path, &out.bases);
  return out.end + out.held;
}

void writer_abandon(void) {
  if (out.file < 0) return;
  close(out.file);
  out.file = -1;
  unlink(out.fresh);
}
