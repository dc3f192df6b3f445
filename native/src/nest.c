// A job that another engine checkpoints has numbers of processes and a directory of its own, which are the same wherever it
// goes on: a pid namespace, and in a mount namespace its sandbox and its streams below one path.
#include "nest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end-as.h"
#include "image.h"
#include "say.h"

// The job's numbers begin here: what restores it runs below them.
#define BEFORE_FIRST "299"
// Where what restores a job finds the new streams.
#define OUTPUT_FD 3
#define ERRORS_FD 4

static const char *const STREAMS[] = {"stdin", "stdout", "stderr"};

struct nest {
  const char *at, *sandbox, *report;
  // To be restored: the image, the directory in which it is unpacked, and where the number of the first process will be.
  const char *from, *into, *first;
  char **command;
};

static int report = -1;

// The report is read by the worker; without one, failures are said to the job's user.
static void open_report(const char *path) {
  if (!path) return;
  report = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (report < 0) fail_errno("the report %s cannot be written", path);
}

static void tell(const char *text) {
  if (report >= 0 && write(report, text, strlen(text)) < 0) fail_errno("the report cannot be written");
}

static void bind(const char *from, const char *to) {
  if (mount(from, to, NULL, MS_BIND | MS_REC, NULL)) fail_errno("%s cannot be mounted at %s", from, to);
}

// A descriptor that was opened outside of the mount namespace is nothing that an engine knows.
static void open_again(const struct nest *how, int stream) {
  struct stat found, output;
  if (fstat(stream, &found)) return;
  if (stream == 2 && fstat(1, &output) == 0 && output.st_ino == found.st_ino && output.st_dev == found.st_dev) {
    dup2(1, 2);
    return;
  }
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", stream);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) fail_errno("%s cannot be read", link);
  path[length] = 0;
  const char *name = path;
  if (S_ISREG(found.st_mode)) {
    name = printed("%s/%s", how->at, STREAMS[stream]);
    close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    bind(path, name);
  }
  int file = open(name, fcntl(stream, F_GETFL) & (O_ACCMODE | O_APPEND));
  if (file < 0) fail_errno("%s cannot be opened again", path);
  lseek(file, lseek(stream, 0, SEEK_CUR), SEEK_SET);
  dup2(file, stream);
  close(file);
}

static void make_place(const struct nest *how) {
  if (mount("none", how->at, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k"))
    fail_errno("no directory can be mounted at %s", how->at);
  const char *work = printed("%s/work", how->at);
  if (mkdir(work, 0700)) fail_errno("%s cannot be made", work);
  bind(how->sandbox, work);
  for (int stream = 0; stream < 3; stream++) open_again(how, stream);
  if (chdir(work)) fail_errno("%s cannot be entered", work);
  setenv("PWD", work, 1);
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) fail_errno("/proc cannot be mounted");
}

static pid_t forked(void) {
  pid_t pid = fork();
  if (pid < 0) fail_errno("no process can be made");
  return pid;
}

static pid_t start(const struct nest *how, const sigset_t *before) {
  int last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  if (last < 0 || write(last, BEFORE_FIRST, strlen(BEFORE_FIRST)) < 0) fail_errno("the numbers of processes cannot be chosen");
  close(last);
  pid_t first = forked();
  if (first > 0) return first;
  setsid();
  sigprocmask(SIG_SETMASK, before, NULL);
  // A pipe or socket that it was given by accident could not be carried.
  closefrom(3);
  execvp(how->command[0], how->command);
  fprintf(stderr, "gryphus-helper: %s cannot be started: %s\n", how->command[0], strerror(errno));
  _exit(127);
}

// Lets the engine restore the job: when the engine has ended, its first process is our child. Returns its number.
static pid_t restore(const struct nest *how, const sigset_t *before) {
  pid_t engine = forked();
  if (engine == 0) {
    sigprocmask(SIG_SETMASK, before, NULL);
    dup2(1, OUTPUT_FD);
    dup2(2, ERRORS_FD);
    closefrom(ERRORS_FD + 1);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(null, i);
    close(null);
    execvp(how->command[0], how->command);
    _exit(127);
  }
  int status;
  while (waitpid(engine, &status, __WALL) < 0)
    if (errno != EINTR) fail_errno("the engine cannot be waited for");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) exit(1);
  FILE *file = fopen(how->first, "re");
  int first = 0;
  if (!file || fscanf(file, "%d", &first) != 1 || first <= 1) fail("%s does not name the job's first process", how->first);
  fclose(file);
  // It may have been suspended when its image was made.
  kill(-1, SIGCONT);
  tell("restored\n");
  crash_point("restore.released");
  return first;
}

// The first process of the namespace passes signals on, adopts orphans, and ends them all with it.
static _Noreturn void keep_namespace(const struct nest *how, const sigset_t *before, int told) {
  sigset_t all;
  sigfillset(&all);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  make_place(how);
  pid_t first = how->from ? restore(how, before) : start(how, before);
  tell(printed("first %d\n", first));
  close(0);
  close(1);
  for (;;) {
    int status;
    pid_t ended;
    while ((ended = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
      if (ended == first) _exit(write(told, &status, sizeof status) < 0);
    int number = sigwaitinfo(&all, NULL);
    if (number > 0 && number != SIGCHLD) kill(-first, number);
  }
}

static void unpack(const struct nest *how) {
  int image = open(how->from, O_RDONLY | O_CLOEXEC);
  struct image_header header;
  if (image < 0 || read(image, &header, sizeof header) != sizeof header) fail_errno("%s cannot be read", how->from);
  if (memcmp(header.magic, IMAGE_MAGIC, sizeof header.magic) != 0 || header.version != ENGINE_IMAGE_VERSION)
    fail("%s is not an image of another engine", how->from);
  pid_t tar = forked();
  if (tar == 0) {
    dup2(image, 0);
    execlp("tar", "tar", "-x", "-p", "-f", "-", "-C", how->into, (char *)NULL);
    _exit(127);
  }
  int status;
  while (waitpid(tar, &status, 0) < 0 && errno == EINTR) continue;
  close(image);
  if (status != 0) fail("tar cannot unpack the image");
}

static struct nest options(char **words) {
  struct nest how = {0};
  for (; *words && strcmp(*words, "--") != 0; words += 2) {
    if (!words[1]) break;
    const char **to = strcmp(*words, "--at") == 0        ? &how.at
                      : strcmp(*words, "--sandbox") == 0 ? &how.sandbox
                      : strcmp(*words, "--report") == 0  ? &how.report
                      : strcmp(*words, "--from") == 0    ? &how.from
                      : strcmp(*words, "--into") == 0    ? &how.into
                      : strcmp(*words, "--first") == 0   ? &how.first
                                                         : NULL;
    if (!to) fail("nest has no option %s", *words);
    *to = words[1];
  }
  if (!*words || !words[1] || !how.at || !how.sandbox || (how.from && (!how.into || !how.first)))
    fail("nest --at DIR --sandbox DIR [--report FILE] [--from IMAGE --into DIR --first FILE] -- COMMAND [ARGUMENT]…");
  how.command = words + 1;
  return how;
}

void nest(char **words) {
  struct nest how = options(words);
  open_report(how.report);
  if (report >= 0 && how.from) say_to = report;
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  if (how.from) unpack(&how);
  crash_point("restore.placed");
  if (mkdir(how.at, 0755) && errno != EEXIST) fail_errno("%s cannot be made", how.at);
  int told[2], status = SIGKILL;
  if (pipe2(told, O_CLOEXEC)) fail_errno("no pipe can be made");
  if (unshare(CLONE_NEWNS | CLONE_NEWPID)) fail_errno("no namespace can be made");
  // What is mounted on the machine later is seen by the job, but not the other way round.
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) fail_errno("no mount namespace can be made");
  pid_t keeper = forked();
  if (keeper == 0) keep_namespace(&how, &before, told[1]);
  tell(printed("keeper %d\n", keeper));
  close(told[1]);
  for (;;) {
    int number = sigwaitinfo(&all, NULL);
    if (number != SIGCHLD && number > 0) kill(keeper, number);
    int ended;
    if (waitpid(keeper, &ended, WNOHANG) != keeper) continue;
    bool is_told = read(told[0], &status, sizeof status) == sizeof status;
    // Else whoever reads the report knows that it was not the job that was killed.
    if (is_told) tell("ended\n");
    if (!is_told && WIFEXITED(ended)) _exit(WEXITSTATUS(ended));
    end_as(status);
  }
}
