// What is known of files at home, for a moment: as in NFS, others' changes are seen a second later.
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

// 0, or an errno below 0. `follow`: through a link at the end of the path.
int attributes(const char *path, bool follow, struct stat *status);
// The same from what is known already; -EAGAIN if home has to be asked.
int believed_attributes(const char *path, bool follow, struct stat *status);
// Whether home has never said that there is something, and not just now that there is not.
bool is_new(const char *path);
// Home has just told what a file is.
void note_status(const char *path, const struct stat *status);
// It is not there any more.
void note_absence(const char *path);
// What is known of a name, and of the list of its directory, may be wrong.
void forget_name(const char *path);
// What is known of everything may be wrong.
void forget_all(void);
// The names of a directory, as getdents64 has them, in a new buffer; an errno below 0.
int list_directory(const char *path, unsigned char **records, size_t *length);

#endif
