// The format of an image: a header, the blocks of its content, and the sections, which say where each block belongs. All
// numbers are little endian; all sizes are in bytes. A block that an earlier image has is not written again: the image
// names that file as one of its bases, which are beside it as NAME.ID.
#ifndef IMAGE_H
#define IMAGE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define IMAGE_MAGIC "GRYCKPT\n"
#define IMAGE_VERSION 2
// An image of another engine: this header with the engine's name in the place of bases, then an archive of tar.
#define ENGINE_IMAGE_VERSION 0x101

// The processor, by ELF's numbers, and where the addresses of its programs end.
#if defined(__x86_64__)
#define IMAGE_MACHINE 62
#define USER_END 0x7ffffffff000UL
#elif defined(__aarch64__)
#define IMAGE_MACHINE 183
#define USER_END 0x1000000000000UL
#endif

#define PAGE 4096UL
#define BLOCK (64UL << 10)
#define MOST_BASES 8

struct image_base {
  uint64_t id;
  uint64_t bytes;  // of the file
};

// The header is written last: a file without it is no image. Its fields are also read by src/pool/host/image.ts.
struct image_header {
  char magic[8];
  uint32_t version;
  uint32_t machine;
  uint64_t id;  // a checksum of the sections, and of this header with an id of 0
  uint64_t sections_at, sections_bytes;
  uint64_t stdout_bytes, stderr_bytes;  // what had been written to them
  uint32_t base_count;
  uint32_t zero;
  struct image_base bases[MOST_BASES];
};

// A piece of content.
struct image_block {
  uint64_t hash[2];
  uint64_t at;      // in its file
  uint32_t bytes;   // at most BLOCK
  uint32_t stored;  // the same: it is not compressed
  uint32_t file;    // 0: this one; n: the nth base
  uint32_t zero;
};

// A section starts at a multiple of 8; its content has `length` bytes: a fixed structure, then what the kind adds.
struct section {
  uint32_t kind;
  uint32_t zero;
  uint64_t length;
};

enum section_kind {
  SECTION_JOB = 1,      // struct image_job, the sandbox's path
  SECTION_FILE,         // struct image_file, its name, the blocks of its content or the target of a link
  SECTION_DESCRIPTION,  // struct image_description, its path, the blocks of the content if it is unlinked or a pipe
  SECTION_PROCESS,      // struct image_process, its working directory, its program; what follows belongs to it
  SECTION_FD,           // struct image_fd
  SECTION_THREAD,       // struct image_thread, its extended state
  SECTION_SIGNAL,       // struct image_signal
  SECTION_MAP,          // struct image_map, the path of a shared file
  SECTION_PAGES,        // struct image_pages, any number
  SECTION_END,
  SECTION_LOCK,  // struct image_lock; one that a process holds belongs to the process before it
};

struct image_job {
  uint32_t processes;
  uint32_t descriptions;
  uint64_t vdso_bytes;
  uint64_t vdso_hash;
  uint64_t state_bytes;
};

struct image_file {
  uint32_t kind;  // 'f', 'd', 'l', 'p'
  uint32_t mode;
  int64_t modified;  // nanoseconds
  uint64_t name_bytes;
  uint64_t content_bytes;
};

enum description_kind {
  OPEN_SANDBOX = 1,  // a file or directory in the sandbox; its path is relative to it
  OPEN_ELSEWHERE,    // a file elsewhere that is only read; its path is absolute
  OPEN_DEVICE,       // /dev/null and the like
  OPEN_STDIN,        // the streams that the restoring process has as descriptors 0, 1 and 2
  OPEN_STDOUT,
  OPEN_STDERR,
  OPEN_UNLINKED,  // a file without a name; its content follows
  OPEN_PIPE,      // both ends of a pipe have the same `pipe`; the content follows the first
};

// What open(2) makes: descriptors that were copied, or inherited by a child, share one.
struct image_description {
  uint32_t kind;
  uint32_t flags;
  uint64_t position;
  uint64_t size;
  int64_t modified;  // nanoseconds; of a file elsewhere, which must not have changed
  uint64_t pipe;
  uint64_t path_bytes;
  uint64_t content_bytes;
};

struct image_action {
  uint64_t handler, flags, restorer, mask;
};

// The fields of struct prctl_mm_map that are kept.
struct image_layout {
  uint64_t start_code, end_code, start_data, end_data, start_brk, brk, start_stack, arg_start, arg_end, env_start,
      env_end;
};

struct image_timer {
  int64_t interval_s, interval_us, value_s, value_us;
};

struct image_process {
  int32_t pid;
  int32_t parent;   // 0: it is the job's first process
  int32_t group;    // 0: the job's own
  int32_t session;  // 0: the job's own
  uint32_t umask;
  uint32_t no_new_privileges;
  uint64_t directory_bytes;
  uint64_t program_bytes;
  struct image_layout layout;
  struct {
    uint64_t soft, hard;
  } limits[16];
  struct image_action actions[64];
  struct image_timer timers[3];
};

struct image_fd {
  int32_t fd;
  uint32_t description;
  uint32_t close_on_exec;
  uint32_t zero;
};

enum lock_kind {
  LOCK_OF_OPEN = 1,  // flock(2): of what open(2) made
  LOCK_OF_RANGE,     // F_OFD_SETLK: the same
  LOCK_OF_PROCESS,   // F_SETLK: of the process
};

// A lock that is held on a file.
struct image_lock {
  uint32_t kind;
  uint32_t writes;       // nobody else may hold one
  uint32_t description;  // of a file to which it belongs, or
  int32_t fd;            // by which the process took it
  uint64_t start, length;  // 0: up to the file's end, wherever that is
};

struct image_thread {
  int32_t tid;
  uint32_t state_bytes;
  struct user_regs_struct regs;
  uint64_t signal_mask;
  uint64_t robust_list, robust_list_bytes;
  uint64_t tid_address;
  uint64_t rseq, rseq_bytes, rseq_signature;
  uint64_t stack, stack_flags, stack_bytes;
  char name[16];
};

struct image_signal {
  int32_t tid;  // 0: sent to the whole process
  uint32_t zero;
  siginfo_t info;
};

enum map_kind {
  MAP_OF_PAGES = 1,     // private; all its pages that are not zero follow
  MAP_OF_STACK,         // the same, but it grows downwards
  MAP_OF_SHARED,        // anonymous memory that is shared with children
  MAP_OF_SHARED_FILE,   // a file in the sandbox
  MAP_OF_KERNEL,        // vdso and vvar
};

struct image_map {
  uint64_t start, end, offset;
  uint32_t protection;
  uint32_t kind;
};

// Pages that are not zero, in one block.
struct image_pages {
  uint64_t address;
  struct image_block block;
};

// The checksum of what follows a header: not against forgery, but against any damage.
uint64_t hash_start(void);
uint64_t hash_more(uint64_t hash, const void *bytes, size_t length);
// By which blocks are known to be the same: 128 bits.
void hash_block(const void *bytes, size_t length, uint64_t hash[2]);

#endif
