// Messages for whoever called us. Each failure is one sentence on standard error.
#ifndef SAY_H
#define SAY_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

#include "memory.h"

// Prints "gryphus-helper: …" and ends with status 1. Processes that are traced go on, or end if they were being changed.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same, with the meaning of errno.
_Noreturn void fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Called by fail before it ends, once.
extern void (*before_failing)(void);
// Where fail goes instead of ending, without a word; NULL: it ends.
extern jmp_buf *fail_instead;

// Where the sentences go: a descriptor.
extern int say_to;

// Ends this process as a power failure would, if the file that GRYPHUS_CRASH_FILE names has this word in it: for tests.
void crash_point(const char *name);

#endif
