#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch.h"
#include "job.h"
#include "restore.h"
#include "say.h"

#define RIGHT 37

static pid_t start_one(void) {
  int made[2];
  if (pipe2(made, O_CLOEXEC)) fail_errno("no pipe can be made");
  pid_t child = fork();
  if (child < 0) fail_errno("no process can be made");
  if (child == 0) {
    sigset_t mask;
    sigemptyset(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(null, i);
    pid_t before = getppid();
    // Its pipe closes when it is ready, and from then on it may be stopped at any instruction.
    closefrom(3);
    // Until it has gone on below another process.
    while (getppid() == before) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    _exit(RIGHT);
  }
  close(made[1]);
  char nothing;
  if (read(made[0], &nothing, 1) != 0) fail("the probe does not start");
  close(made[0]);
  return child;
}

int probe(void) {
  char directory[] = "/tmp/gryphus-probe-XXXXXX";
  if (!mkdtemp(directory)) fail_errno("no directory can be made in /tmp");
  char *image = printed("%s/image", directory);
  const char *skip[] = {"image"};
  int status = 0;
  pid_t dumper = fork();
  if (dumper == 0) {
    pid_t child = start_one();
    dump_job(&(struct request){.pid = child, .sandbox = directory, .to = image, .skip = skip, .skips = 1, .kill = true});
    exit(0);
  }
  waitpid(dumper, &status, 0);
  int ended = -1;
  if (status == 0) {
    pid_t restorer = fork();
    if (restorer == 0) {
      int how = restore_job(image, &(struct request){.sandbox = directory, .skip = skip, .skips = 1});
      _exit(WIFEXITED(how) ? WEXITSTATUS(how) : 1);
    }
    waitpid(restorer, &ended, 0);
  }
  unlink(image);
  // What was written beside it.
  unlink(printed("%s/image.new", directory));
  rmdir(directory);
  if (status != 0) return 1;
  if (!WIFEXITED(ended) || WEXITSTATUS(ended) != RIGHT) {
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 1) return 1;
    fail("a restored program did not go on");
  }
  struct utsname name;
  uint64_t bytes, hash;
  uname(&name);
  own_vdso(&bytes, &hash);
  printf("%s %s vdso-%016lx cpu-%016lx\n", name.sysname, name.machine, hash, arch_processor());
  return 0;
}
