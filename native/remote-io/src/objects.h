// Files and directories of home that are here: each is a file in the cache, which processes have open.
#ifndef OBJECTS_H
#define OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "target.h"

struct parts;
struct object {
  bool directory;
  char *path;          // at home, where it was opened last or renamed to
  struct stat status;  // as home had it when its content was the one that is here
  uint64_t number;     // of its file in the cache
  bool here;           // that file exists
  bool whole;          // and has all of the content
  bool written;        // it may have been changed here
  bool untouched;      // and it has been opened to be written, but was not yet
  bool appending;      // and all that is new stands behind `sent`
  bool gone;           // it was removed, or replaced
  bool closed;         // somebody who may have written it has closed it: it is to be written back
  int error;           // of the last write-back; an errno below 0
  off_t sent;
  struct parts *parts;  // if it was not brought whole
  int base;  // what home has, to compare with; -1: none
  pthread_mutex_t lock;
  struct object *next, *next_written;
};

// The files are made below this directory.
void open_cache(const char *directory);
// The object of a file at home.
struct object *object_of(const char *path, const struct stat *status);
// The same, if there is one.
struct object *known_object(const struct stat *status);
// The object of a directory at home.
struct object *directory_object(const char *path);
// The object whose file a process has open, and its number; NULL if it is not one.
struct object *opened_object(pid_t tid, int fd, uint64_t *number);
// Whether there is any, and whether one may be changed.
bool has_objects(void);
bool has_written(void);
// A new, empty file of an object in the cache, opened for reading and writing; -1 with errno. The one before stays for those
// that have it open. The object's lock must be held.
int fresh_file(struct object *object);
// Opens an object's file in the cache again; -1 with errno.
int reopen(const struct object *object, int flags);
// A file in the cache that has no name; -1 with errno.
int nameless_file(void);
// Whether some process can still write to an object's file.
bool has_writers(const struct object *object);
// Whether some process has an object's file open.
bool in_use(const struct object *object);
// Deletes files that are not an object's newest, or whose object is gone, and that nobody has open.
void drop_old(void);
// Its file at home was removed, or replaced.
void mark_gone(struct object *object);
// Puts an object on the list of those that may have been changed.
void mark_written(struct object *object);
void unmark_written(struct object *object);
// Does something with each file.
void each_file(void (*work)(struct object *));
// Does something with each that may have been changed.
void each_written(void (*work)(struct object *));
// It has another name, or none, as what lies below it.
void objects_moved(const char *from, const char *to);
void objects_removed(const char *path);
// Reads which files were closed by somebody who could write; true if there are any.
bool drain_closed(void);

#endif
