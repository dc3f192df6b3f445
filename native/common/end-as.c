#include "end-as.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void end_as(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  int number = WTERMSIG(status);
  sigset_t all;
  setrlimit(RLIMIT_CORE, &(struct rlimit){0});
  signal(number, SIG_DFL);
  sigfillset(&all);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  _exit(128 + number);
}
