// gryphus-remote-io: a program's files at home, without a change of the program. docs/remote-io.md explains how it works.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "content.h"
#include "end-as.h"
#include "filter.h"
#include "objects.h"
#include "parts.h"
#include "paths.h"
#include "probe.h"
#include "say.h"
#include "supervise.h"
#include "wire.h"

static const char USAGE[] =
    "gryphus-remote-io run --config FILE --cache DIR [--room MB] PROGRAM [ARGUMENT]…\n"
    "                  start a program whose calls about files at home are answered from there;\n"
    "                  of large files that are not brought whole, at most so many megabytes are kept\n"
    "gryphus-remote-io probe   try it on this machine\n";

// The exit status of a program that succeeded, though not all that it wrote could be brought home (EX_IOERR).
#define NOT_WRITTEN 74
#define CANNOT_START 127

static _Noreturn void usage(void) {
  fputs(USAGE, stderr);
  exit(2);
}

static _Noreturn void start(char **words, int socket, const sigset_t *mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int listener = install_filter();
  if (listener < 0) {
    fprintf(stderr, "gryphus-remote-io: %s\n", why_no_filter(errno));
    _exit(CANNOT_START);
  }
  hand_over(socket, listener);
  close(listener);
  close(socket);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(words[0], words);
  fprintf(stderr, "gryphus-remote-io: %s cannot be started: %s\n", words[0], strerror(errno));
  _exit(CANNOT_START);
}

// A quarter of what is free, within limits.
static uint64_t room_for(const char *cache) {
  struct statvfs space;
  uint64_t least = 64 << 20, most = (uint64_t)4 << 30;
  uint64_t quarter = statvfs(cache, &space) ? 0 : (uint64_t)space.f_bavail * space.f_frsize / 4;
  return quarter < least ? least : quarter > most ? most : quarter;
}

static int run(char **words) {
  const char *config = NULL, *cache = NULL, *room = NULL;
  for (; words[0] && strncmp(words[0], "--", 2) == 0; words += 2) {
    if (words[0][2] == 0) {
      words++;
      break;
    }
    if (!words[1]) usage();
    if (strcmp(words[0], "--config") == 0) config = words[1];
    else if (strcmp(words[0], "--cache") == 0) cache = words[1];
    else if (strcmp(words[0], "--room") == 0) room = words[1];
    else usage();
  }
  if (!words[0] || !config || !cache) usage();
  // Signals are for the program. We go on until it has ended, and what it wrote is at home.
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  if (mkdir(cache, 0700) && errno != EEXIST) fail_errno("%s", cache);
  open_cache(cache);
  set_room(room ? strtoull(room, NULL, 10) << 20 : room_for(cache));
  // Pieces of files come and go: memory that is given back to the system each time would have to be cleared anew each time.
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
  mallopt(M_TRIM_THRESHOLD, 32 << 20);
  open_wire(config);
  learn_roots();
  int pair[2], status;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) fail_errno("no socket");
  pid_t child = fork();
  if (child < 0) fail_errno("no process can be started");
  if (child == 0) start(words, pair[1], &before);
  close(pair[1]);
  int listener = take_over(pair[0], child);
  if (listener < 0 && errno != 0) {
    kill(child, SIGKILL);
    fail_errno("the program's calls cannot be seen");
  }
  close(pair[0]);
  if (listener >= 0) supervise(listener);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR);
  bool written = write_back_all();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !written) _exit(NOT_WRITTEN);
  end_as(status);
}

int main(int count, char **words) {
  if (count < 2) usage();
  if (strcmp(words[1], "probe") == 0) return probe();
  if (strcmp(words[1], "run") == 0) return run(words + 2);
  usage();
}
