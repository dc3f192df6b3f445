// Makes a job go on from its image.
#ifndef RESTORE_H
#define RESTORE_H

#include <fcntl.h>
#include <stdatomic.h>

#include "job.h"
#include "reader.h"

// A busy machine takes its time; what cannot be restored holds the job.
#define RESTORE_SECONDS 60

struct restoring {
  const struct image *image;
  const char *sandbox;
  int *open;       // of each description, a descriptor
  int first_free;  // all that we have open is at or above it, except 0, 1 and 2
  int *programs;   // of each process, its program's file, or -1
  bool exact;      // in a pid namespace of its own: processes and threads get their old numbers
  const char *environment;
  bool reports;    // to the file that messages go to
  bool bounded;    // in a user namespace of its own
  // Shared by the processes while they are made.
  struct {
    atomic_int ready, failed;
  } *progress;
};

// Restores it and returns, when its first process has ended, that one's wait status.
int restore_job(const char *image, const struct request *request);

// A lock as fcntl(2) takes it.
struct flock lock_range(const struct image_lock *lock);
void open_descriptions(struct restoring *restoring, int sandbox);
// Becomes an empty process, with everything but memory and threads, that waits to be rebuilt. Does not return.
_Noreturn void become(const struct restoring *restoring, size_t index);
// Makes a process with a number, or with any.
pid_t fork_with_number(pid_t number);
// Gives such a process its memory and threads. `pid`: its number now.
void rebuild(const struct restoring *restoring, size_t index, pid_t pid);
// Lets all go.
void release(void);

// The bytes and content of this kernel's vdso.
void own_vdso(uint64_t *bytes, uint64_t *hash);

#endif
