#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANNOT_START 126

static void print(const char *format, va_list words, const char *reason) {
  char text[1024];
  vsnprintf(text, sizeof text, format, words);
  if (reason) fprintf(stderr, "gryphus-remote-io: %s: %s\n", text, reason);
  else fprintf(stderr, "gryphus-remote-io: %s\n", text);
}

void fail(const char *format, ...) {
  va_list words;
  va_start(words, format);
  print(format, words, NULL);
  exit(CANNOT_START);
}

void fail_errno(const char *format, ...) {
  const char *reason = strerror(errno);
  va_list words;
  va_start(words, format);
  print(format, words, reason);
  exit(CANNOT_START);
}

void warn(const char *format, ...) {
  va_list words;
  va_start(words, format);
  print(format, words, NULL);
  va_end(words);
}

char *copied(const char *text) { return printed("%s", text); }
