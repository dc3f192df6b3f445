// What only a process itself can tell: it calls the kernel for us.
#ifndef ASK_H
#define ASK_H

#include "job.h"

#define STATE_ROOM (64 << 10)

struct told {
  struct image_process process;
  struct image_thread *threads;
  unsigned char (*states)[STATE_ROOM];
};

// Asks a process whose threads are all stopped. They are afterwards as they were.
void ask_process(struct found_process *process, struct told *told);

#endif
