// Brings content from home, large files in several pieces at a time.
#ifndef FETCH_H
#define FETCH_H

#include "objects.h"

// Each with the object's lock held; 0, or an errno below 0.

// All of it, into an empty file. Sets the object's state to that of the content.
int fetch_whole(struct object *object, int fd, const struct stat *status);
// What is before an offset.
int fetch_part(struct object *object, int fd, off_t size);

// Writes all of it at an offset.
int store(int fd, const uint8_t *bytes, size_t length, off_t at);

#endif
