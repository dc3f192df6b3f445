// Requests to the job's home, through the worker of this machine.
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

// In the order of REMOTE_CALLS (src/site/remote-io.ts).
enum home_call {
  HOME_ROOTS,
  HOME_STAT,
  HOME_LIST,
  HOME_OPEN,
  HOME_READ,
  HOME_WRITE,
  HOME_APPEND,
  HOME_TRUNCATE,
  HOME_UNLINK,
  HOME_RMDIR,
  HOME_MKDIR,
  HOME_RENAME,
  HOME_LINK,
  HOME_SYMLINK,
  HOME_READLINK,
  HOME_CHMOD,
  HOME_CHOWN,
  HOME_UTIMENS,
  HOME_ACCESS,
  HOME_FSYNC,
};

struct request {
  enum home_call call;
  const char *words[2];
  int64_t numbers[4];
  const void *bytes;
  size_t length;
};

// `result`: 0 or more, or an errno below 0. `bytes` is to be freed.
struct answer {
  int64_t result;
  uint8_t *bytes;
  size_t length;
};

// The largest piece of a file in one request or answer; bytes.
#define PIECE (1 << 20)
// How many requests may be on their way at once.
#define LANES 6

// `config`: the file that says where the worker listens, and the cookie. It is read again after each cut.
void open_wire(const char *config);
// Asks, again and again, until there is an answer: whoever waits for it waits while home is away.
struct answer ask(const struct request *request);
// The same for a request whose answer's bytes are not wanted: its result.
int64_t ask_result(const struct request *request);

// The state of a file at the begin of an answer: its length there, and what it says.
#define STATUS_BYTES (13 * 8)
bool read_status(const uint8_t *bytes, size_t length, struct stat *status);
// Whoever owns files at home owns them here.
void map_owner(uint64_t home_uid, uint64_t home_gid);
uint64_t number_at(const uint8_t *bytes);

#endif
