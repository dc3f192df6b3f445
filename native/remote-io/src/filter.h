// The filter under which a program's calls come to us.
#ifndef FILTER_H
#define FILTER_H

#include <sys/types.h>

// Lays the filter on this process and all that it will start. Returns where the calls arrive; -1 with errno.
int install_filter(void);
// What the errno of install_filter means, as a sentence.
const char *why_no_filter(int error);
// The process under the filter says over a socket which descriptor that is, and waits until it has been taken.
void hand_over(int socket, int fd);
// Takes it; -1 with errno, which is 0 if the process ended without one.
int take_over(int socket, pid_t from);

#endif
