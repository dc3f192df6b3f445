#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*before_failing)(void);
jmp_buf *fail_instead;
int say_to = 2;

static void say(const char *format, va_list list, const char *why) {
  if (fail_instead) longjmp(*fail_instead, 1);
  char text[8192];
  int length = vsnprintf(text, sizeof text, format, list);
  if (length < 0) text[0] = 0;
  dprintf(say_to, "gryphus-helper: %s%s%s\n", text, why ? ": " : "", why ? why : "");
}

static _Noreturn void end(void) {
  void (*call)(void) = before_failing;
  before_failing = NULL;
  if (call) call();
  exit(1);
}

void fail(const char *format, ...) {
  va_list list;
  va_start(list, format);
  say(format, list, NULL);
  va_end(list);
  end();
}

void fail_errno(const char *format, ...) {
  const char *why = strerror(errno);
  va_list list;
  va_start(list, format);
  say(format, list, why);
  va_end(list);
  end();
}

void crash_point(const char *name) {
  const char *path = getenv("GRYPHUS_CRASH_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  char text[64] = {0};
  bool is = read(file, text, sizeof text - 1) > 0 && strcmp(strtok(text, "\n") ?: "", name) == 0;
  close(file);
  if (is && unlink(path) == 0) kill(getpid(), SIGKILL);
}

void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes > 0 ? bytes : 1);
  if (!memory) fail("out of memory");
  return memory;
}

// An array of `count` elements that gets one more. It doubles at each power of two.
void *grown(void *memory, size_t count, size_t size) {
  if (count > 0 && (count & (count - 1)) != 0) return memory;
  size_t room = count == 0 ? 1 : count * 2;
  void *more = realloc(memory, room * size);
  if (!more) fail("out of memory");
  memset((char *)more + count * size, 0, (room - count) * size);
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
