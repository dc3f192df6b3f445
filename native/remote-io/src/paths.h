// Which paths are at home.
#ifndef PATHS_H
#define PATHS_H

#include <stdbool.h>

// Asks home which directories the job may reach there.
void learn_roots(void);
// Whether a normal path is one of those directories or below.
bool is_home(const char *path);
// Whether one of them lies below a normal path.
bool leads_home(const char *path);
// An absolute path without empty names, `.` and `..`; relative ones are taken from `base`. To be freed.
char *normal_path(const char *base, const char *path);
// The directory of a normal path. To be freed.
char *parent_of(const char *path);

#endif
