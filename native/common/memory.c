#include "memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes > 0 ? bytes : 1);
  if (!memory) fail("out of memory");
  return memory;
}

void *grown(void *memory, size_t count, size_t size) {
  if (count > 0 && (count & (count - 1)) != 0) return memory;
  size_t capacity = count == 0 ? 1 : count * 2;
  void *more = realloc(memory, capacity * size);
  if (!more) fail("out of memory");
  memset((char *)more + count * size, 0, (capacity - count) * size);
  return more;
}

char *printed(const char *format, ...) {
  va_list list;
  char *text = NULL;
  va_start(list, format);
  int length = vasprintf(&text, format, list);
  va_end(list);
  if (length < 0) fail("out of memory");
  return text;
}
