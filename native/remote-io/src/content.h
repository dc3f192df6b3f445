// The content of files: brought here, and written back.
#ifndef CONTENT_H
#define CONTENT_H

#include "objects.h"

// Whether two states are of the same content.
bool same_content(const struct stat *a, const struct stat *b);

// Each with the object's lock held; 0, or an errno below 0.

// From now on the object's file has the content that `status` says.
int bring(struct object *object, const struct stat *status);
// The same if home has just sent all of it.
int keep(struct object *object, const struct stat *status, const uint8_t *bytes);
// The same of a large file, of which parts are brought when they are read.
int bring_parts(struct object *object, const struct stat *status);
// It has been opened to be read and written, but nobody has written.
void mark_untouched(struct object *object);
// All of it is brought, and, if it may be written, what home has is kept to compare with.
int make_ordinary(struct object *object);
// The object is going to be written. `empty`: it has just been made or emptied at home. `append`: all is written at its end;
// `blind`: and it is not read.
int prepare_writing(struct object *object, const struct stat *status, bool empty, bool append, bool blind);
// Writes back what is new. What nobody can write any more is then as at home.
int write_back(struct object *object);
// Its length was set at home.
int shortened(struct object *object, off_t size);

// What is known of its state, with what was written here and not yet at home.
void overlay(struct object *object, struct stat *status);
// Writes back, with the lock taken here, and says on standard error what cannot be.
void write_back_quietly(struct object *object);
// Writes back all that its writers have closed.
void settle(void);
// Everything; false if something could not be written.
bool write_back_all(void);

#endif
