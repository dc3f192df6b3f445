// Writes an image: whole or not there.
#ifndef WRITER_H
#define WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "image.h"

// As many pieces of content as writer_blocks takes at once.
#define BATCH 64

struct piece {
  const unsigned char *bytes;
  size_t length;  // 1 to BLOCK
};

// `path`.new is written, and gets its name when it is complete and on disk. `base`: an image whose blocks need not be
// written again, or NULL.
void writer_open(const char *path, const char *base);
// A section of `length` bytes, which the following calls of writer_add give.
void writer_section(uint32_t kind, uint64_t length);
void writer_add(const void *bytes, size_t length);
// Writes pieces of content, and says where they are.
void writer_blocks(const struct piece *pieces, size_t count, struct image_block *blocks);
// All content is written: the job may go on. Returns what is new in the image, in bytes.
uint64_t writer_close(uint64_t stdout_bytes, uint64_t stderr_bytes);
// Removes what was written, if it is not complete.
void writer_abandon(void);

#endif
