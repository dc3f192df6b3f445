// Memory, or the end: `fail` is that of the program.
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

// Zeroed.
void *allocate(size_t bytes);
// An array of `count` elements that gets one more, zeroed. It doubles at each power of two.
void *grown(void *memory, size_t count, size_t size);
char *printed(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
