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
