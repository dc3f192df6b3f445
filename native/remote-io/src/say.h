// Messages for whoever called us.
#ifndef SAY_H
#define SAY_H

#include "memory.h"

// Prints "gryphus-remote-io: …" and ends with status 126.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same, with the meaning of errno.
_Noreturn void fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints a sentence and goes on.
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

char *copied(const char *text);

#endif
