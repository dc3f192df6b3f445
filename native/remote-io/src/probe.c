#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filter.h"
#include "target.h"

// A path that no machine has.
static const char ASKED[] = "/gryphus/remote-io/probe";
static const char HIDDEN[] = "processes may not look at those that they started (ptrace is forbidden here)";

static _Noreturn void try_to_open(int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int listener = install_filter();
  if (listener < 0) _exit(errno);
  hand_over(socket, listener);
  _exit(syscall(SYS_openat, AT_FDCWD, ASKED, O_RDONLY, 0) >= 0 ? 0 : EBADF);
}

static const char *answer(int listener) {
  for (;;) {
    struct seccomp_notif notice;
    memset(&notice, 0, sizeof notice);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice)) return "calls do not arrive";
    if (notice.data.nr != SYS_openat) {
      struct seccomp_notif_resp go_on = {.id = notice.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
      ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
      continue;
    }
    char *path = read_text((pid_t)notice.pid, notice.data.args[1]);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool read = path && strcmp(path, ASKED) == 0;
    struct seccomp_notif_addfd add = {.id = notice.id, .srcfd = (uint32_t)null};
    int given = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    struct seccomp_notif_resp response = {.id = notice.id, .val = given, .error = given < 0 ? -EBADF : 0};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    free(path);
    if (!read) return HIDDEN;
    return given < 0 ? "the kernel cannot give descriptors to a process that asks (Linux 5.9 or later can)" : NULL;
  }
}

int probe(void) {
  int pair[2], status = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return perror("gryphus-remote-io"), 1;
  pid_t child = fork();
  if (child == 0) {
    close(pair[0]);
    try_to_open(pair[1]);
  }
  close(pair[1]);
  int listener = child < 0 ? -1 : take_over(pair[0], child);
  bool hidden = listener < 0 && errno != 0;
  const char *why = NULL;
  if (hidden) kill(child, SIGKILL);
  if (listener >= 0) {
    why = answer(listener);
    // Whatever else it asks is refused.
    close(listener);
  }
  if (child > 0) waitpid(child, &status, 0);
  if (hidden) why = HIDDEN;
  else if (listener < 0) why = child < 0 ? "no process can be started" : why_no_filter(WEXITSTATUS(status));
  else if (!why && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) why = "an answered call did not succeed";
  if (!why) return 0;
  fprintf(stderr, "gryphus-remote-io: %s\n", why);
  return 1;
}
