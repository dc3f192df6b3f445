// The processes whose calls are answered: their memory and descriptors.
#ifndef TARGET_H
#define TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// A file's identity on this machine.
struct identity {
  dev_t dev;
  ino_t ino;
};

// A path of at most PATH_MAX bytes with its end; NULL with errno EFAULT or ENAMETOOLONG.
char *read_text(pid_t tid, uint64_t address);
bool read_memory(pid_t tid, uint64_t address, void *to, size_t bytes);
bool write_memory(pid_t tid, uint64_t address, const void *from, size_t bytes);
// What a descriptor of a process is; false if it has none.
bool identify(pid_t tid, int fd, struct identity *found);
// The process of a thread, its parent, and the time of its start, in ticks; false if it is gone.
struct process {
  pid_t tgid, parent;
  uint64_t started;
};
bool process_of(pid_t tid, struct process *found);
mode_t umask_of(pid_t tid);
// The same open file as a process has, in us; -1 with errno.
int take_descriptor(pid_t tid, int fd);

#endif
