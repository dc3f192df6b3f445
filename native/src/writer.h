// Writes an image: whole or not there.
#ifndef WRITER_H
#define WRITER_H

#include <stddef.h>
#include <stdint.h>

// `path`.new is written, and gets its name when it is complete and on disk.
void writer_open(const char *path);
// A section of `length` bytes, which the following calls of writer_add give.
void writer_section(uint32_t kind, uint64_t length);
void writer_add(const void *bytes, size_t length);
// Returns the image's size.
uint64_t writer_close(void);
// Removes what was written, if it is not complete.
void writer_abandon(void);

#endif
