// Working directories at home: a process cannot really be there, so its relative paths are taken from here.
#ifndef CWD_H
#define CWD_H

#include <stdbool.h>
#include <sys/types.h>

// A process has its working directory at this path at home from now on; NULL: on this machine.
void set_cwd(pid_t tid, const char *path);
// Where it is at home, to be freed; NULL: on this machine.
char *cwd_of(pid_t tid);
bool has_cwds(void);

#endif
