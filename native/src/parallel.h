// Work on many pieces by as many threads as there are processors.
#ifndef PARALLEL_H
#define PARALLEL_H

#include <stddef.h>

// Calls `work` with each number below `count`, in any order and at the same time, and returns when all are done.
void in_parallel(size_t count, void (*work)(size_t index, void *with), void *with);

#endif
