// The filter under which a program's calls come to us.
#ifndef FILTER_H
#define FILTER_H

// Lays the filter on this process and all that it will start. Returns where the calls arrive; -1 with errno.
int install_filter(void);
// What the errno of install_filter means, as a sentence.
const char *why_no_filter(int error);
void send_descriptor(int socket, int fd);
// -1 if there is none.
int receive_descriptor(int socket);

#endif
