// Large files of which only parts are here: what is read is brought, and some of what follows it.
#ifndef PARTS_H
#define PARTS_H

#include "objects.h"

// Smaller files are brought whole.
#define LARGE (16 << 20)
// At most so many bytes from the begin of a block can be asked for at once.
#define MOST_AT_ONCE (1 << 20)
#define BLOCK (64 << 10)

// How much of such files is kept in the cache; bytes.
void set_room(uint64_t bytes);
// The object's newest file, which has the right length and nothing in it, is one of them. Its lock must be held.
void make_parts(struct object *object, const struct stat *status);
// Those of an object's newest file, if something of it may be missing.
struct parts *parts_of(const struct object *object);
// Whether there is any such file.
bool has_parts(void);
// What home last said that it is.
struct stat state_of_parts(struct parts *parts);
// It has another content now, or only other attributes.
void renew_parts(struct parts *parts, const struct stat *status);
void note_parts(struct parts *parts, const struct stat *status);
// Brings a range of MOST_AT_ONCE bytes at most. It stays until it is released. -EAGAIN: it is not here, and `wait` is false.
int hold_range(struct parts *parts, off_t at, size_t length, bool wait);
void release_range(struct parts *parts, off_t at, size_t length);
// Brings what is missing. The file is an ordinary one from then on.
int bring_missing(struct parts *parts);
// Reads that move an offset follow each other.
void begin_turn(struct parts *parts);
bool try_turn(struct parts *parts);
void end_turn(struct parts *parts);

#endif
