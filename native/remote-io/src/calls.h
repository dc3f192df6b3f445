// The system calls that are looked at, and how each is answered.
#ifndef CALLS_H
#define CALLS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "objects.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

struct call {
  uint64_t id;
  pid_t tid;
  int number;
  uint64_t args[6];
};

// A file that a call names: `path` at home, NULL if it is on this machine; the object if it is named by a descriptor.
struct operand {
  char *path;
  struct object *object;
  uint64_t number;  // of the descriptor's file in the cache
};

enum outcome_kind { VALUE, AS_IT_IS, DESCRIPTOR };
// VALUE: the call's result, an errno below 0. AS_IT_IS: the kernel does it. DESCRIPTOR: the process gets the descriptor.
struct outcome {
  enum outcome_kind kind;
  int64_t value;
  bool close_on_exec;
  // Of whose file parts may be missing: the descriptor gets a number by which its reads are seen.
  struct object *partial;
};

typedef struct outcome answering(const struct call *call, const struct operand *one, const struct operand *two);

// Descriptors of files of which parts may be missing have these numbers: the filter sees by them which calls are to be looked at.
// select(2) has none beyond.
#define FIRST_PARTIAL 832
#define END_PARTIAL 1024

// A call, and which of its arguments name files: a directory's descriptor and a path, either -1 if there is none.
struct looked_at {
  int number;
  int8_t directory, path, directory2, path2;
  int8_t empty;  // the argument whose AT_EMPTY_PATH makes the path name the descriptor itself; -1: none
  answering *answer;
  // Only if the descriptor, which is the argument `directory`, is of a file of which parts may be missing.
  bool partial;
};
extern const struct looked_at LOOKED_AT[];
extern const size_t LOOKED_AT_COUNT;
const struct looked_at *looked_at(int number);

enum whose { THIS_MACHINES, HOMES, REFUSED };
// Whether a call is about files at home; if so, which.
enum whose operands_of(const struct call *call, const struct looked_at *how, struct operand *one, struct operand *two);
void free_operands(struct operand *one, struct operand *two);

struct outcome value(int64_t result);
struct outcome as_it_is(void);
// Asks home for what changes a file; its new state, if home tells it, is noted.
int64_t change_at_home(const char *path, const char *second, int call, const int64_t numbers[4]);

answering do_open, do_status, do_access, do_readlink, do_unlink, do_mkdir, do_rename, do_link, do_symlink, do_chmod, do_chown,
    do_times, do_truncate, do_chdir, do_getcwd, do_entries, do_close, do_sync, do_space, do_attribute, do_node,
    do_read, do_seek, do_change, do_map, do_duplicate, do_control, do_device, do_send, do_own_reads;

// Answers at once from what is here; false if it has to wait.
typedef bool answering_now(const struct call *call, const struct operand *one, struct outcome *outcome);
answering_now read_now, open_now, status_now;
// Whether a message may have descriptors with it.
bool carries_descriptors(const struct call *call);
// Whether files are brought in parts, and whether one process can have another such descriptor.
bool parts_allowed(void);
bool can_have_partial(pid_t tid);
// The file with missing parts that a path below /proc leads to; NULL if it leads to none.
struct object *partial_by_proc(pid_t tid, const char *path);

#endif
