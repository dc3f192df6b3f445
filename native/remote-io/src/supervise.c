#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "content.h"
#include "cwd.h"
#include "say.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#endif
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

// A call that waits for home keeps one of them; calls about this machine are never kept waiting.
#define MOST_THREADS 256
#define STACK (256 << 10)
#define NUMBERS 1024

struct work {
  struct call call;
  const struct looked_at *how;
  struct operand one, two;
  struct work *next;
};

static int calls;
static const struct looked_at *by_number[NUMBERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct work *first, **last = &first;
static unsigned idle, threads;

// A free number for a descriptor of a file with missing parts; -1 if there is none.
static int free_number(pid_t tid) {
  char path[64];
  for (int fd = END_PARTIAL - 1; fd >= FIRST_PARTIAL; fd--) {
    snprintf(path, sizeof path, "/proc/%d/fd/%d", tid, fd);
    if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW)) return errno == ENOENT ? fd : -1;
  }
  return -1;
}

// Gives a process a descriptor, and answers its call with it; an errno below 0.
static int give(const struct call *call, const struct outcome *outcome, int number) {
  struct seccomp_notif_addfd one = {
      .id = call->id,
      .srcfd = (uint32_t)outcome->value,
      .flags = SECCOMP_ADDFD_FLAG_SEND | (number < 0 ? 0 : SECCOMP_ADDFD_FLAG_SETFD),
      .newfd = number < 0 ? 0 : (uint32_t)number,
      .newfd_flags = outcome->close_on_exec ? O_CLOEXEC : 0,
  };
  int given = ioctl(calls, SECCOMP_IOCTL_NOTIF_ADDFD, &one);
  if (given >= 0) return 0;
  if (errno != EINVAL) return -errno;
  // Linux 5.14 does both at once.
  one.flags &= ~SECCOMP_ADDFD_FLAG_SEND;
  given = ioctl(calls, SECCOMP_IOCTL_NOTIF_ADDFD, &one);
  if (given < 0) return -errno;
  struct seccomp_notif_resp response = {.id = call->id, .val = given};
  ioctl(calls, SECCOMP_IOCTL_NOTIF_SEND, &response);
  return 0;
}

static int give_partial(const struct call *call, const struct outcome *outcome) {
  // One after another, so that no number is given twice.
  static pthread_mutex_t numbers = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&numbers);
  int number = free_number(call->tid), error = number < 0 ? -EMFILE : give(call, outcome, number);
  pthread_mutex_unlock(&numbers);
  if (!error || error == -ENOENT) return error;
  // Under another number its reads would not be seen.
  struct object *object = outcome->partial;
  pthread_mutex_lock(&object->lock);
  error = make_ordinary(object);
  pthread_mutex_unlock(&object->lock);
  return error ? error : give(call, outcome, -1);
}

static void respond(const struct call *call, struct outcome outcome) {
  struct seccomp_notif_resp response = {.id = call->id};
  if (outcome.kind == DESCRIPTOR) {
    int error = outcome.partial ? give_partial(call, &outcome) : give(call, &outcome, -1);
    close((int)outcome.value);
    if (!error) return;
    response.error = error;
  } else if (outcome.kind == AS_IT_IS) {
    response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  } else if (outcome.value < 0) {
    response.error = (int)outcome.value;
  } else {
    response.val = outcome.value;
  }
  // Whoever asked may have been killed meanwhile.
  ioctl(calls, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static void finish(struct work *work) {
  // Between the question and now, its number may have become another process's.
  if (ioctl(calls, SECCOMP_IOCTL_NOTIF_ID_VALID, &work->call.id) == 0)
    respond(&work->call, work->how->answer(&work->call, &work->one, &work->two));
  free_operands(&work->one, &work->two);
  free(work);
}

static void *work_on(void *nothing) {
  for (;;) {
    pthread_mutex_lock(&lock);
    idle++;
    while (!first) pthread_cond_wait(&more, &lock);
    idle--;
    struct work *work = first;
    first = work->next;
    if (!first) last = &first;
    pthread_mutex_unlock(&lock);
    finish(work);
  }
  return nothing;
}

static void queue(struct work *work) {
  pthread_mutex_lock(&lock);
  work->next = NULL;
  *last = work;
  last = &work->next;
  unsigned waiting = 0;
  for (struct work *one = first; one; one = one->next) waiting++;
  bool start = waiting > idle && threads < MOST_THREADS;
  if (start) threads++;
  pthread_cond_signal(&more);
  pthread_mutex_unlock(&lock);
  if (!start) return;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (pthread_create(&thread, &attributes, work_on, NULL)) fail("no thread can be started");
  pthread_attr_destroy(&attributes);
}

// Calls that cannot be about home, as far as can be said without a look at them.
static bool is_free(const struct call *call, const struct looked_at *how) {
  if (!how) return true;
  if (call->number == SYS_close) return !has_written();
  if (call->number == SYS_getcwd) return !has_cwds();
  if (how->answer == do_send) return !has_objects() || !carries_descriptors(call);
  return how->path < 0 && call->number != SYS_fchdir && !has_objects();
}

// A change of threads would take longer than the answer.
static bool answered_now(const struct call *call, const struct looked_at *how, const struct operand *one, struct outcome *outcome) {
  answering_now *answer = how->answer == do_read     ? read_now
                          : how->answer == do_open   ? open_now
                          : how->answer == do_status ? status_now
                                                     : NULL;
  return answer && answer(call, one, outcome);
}

static void take(const struct call *call) {
  const struct looked_at *how =
      call->number >= 0 && call->number < NUMBERS ? by_number[call->number] : NULL;
  if (is_free(call, how)) return respond(call, as_it_is());
  if (call->number == SYS_getcwd) return respond(call, do_getcwd(call, NULL, NULL));
  struct work work = {.call = *call, .how = how};
  enum whose whose = operands_of(call, how, &work.one, &work.two);
  bool named = how->path >= 0 || how->directory >= 0;
  struct outcome outcome;
  if (whose == HOMES && answered_now(call, how, &work.one, &outcome)) {
    free_operands(&work.one, &work.two);
    return respond(call, outcome);
  }
  if (whose == HOMES || !named) {
    struct work *kept = allocate(sizeof *kept);
    *kept = work;
    return queue(kept);
  }
  free_operands(&work.one, &work.two);
  bool moves = call->number == SYS_chdir || call->number == SYS_fchdir;
  if (whose == THIS_MACHINES && moves && has_cwds()) set_cwd(call->tid, NULL);
  respond(call, whose == REFUSED ? value(-EACCES) : as_it_is());
}

static void *receive(void *nothing) {
  for (;;) {
    struct seccomp_notif notice;
    memset(&notice, 0, sizeof notice);
    if (ioctl(calls, SECCOMP_IOCTL_NOTIF_RECV, &notice)) {
      // Whoever asked is gone already, or all are.
      struct pollfd all = {.fd = calls, .events = POLLIN};
      if (errno != EINTR && errno != ENOENT) return nothing;
      if (poll(&all, 1, 1000) > 0 && all.revents & POLLHUP) return nothing;
      continue;
    }
    struct call call = {.id = notice.id, .tid = (pid_t)notice.pid, .number = notice.data.nr};
    for (int i = 0; i < 6; i++) call.args[i] = notice.data.args[i];
    take(&call);
  }
}

void supervise(int listener) {
  calls = listener;
  // A call is answered on the processor on which it was made (Linux 6.6); without that it only takes longer.
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
  for (size_t i = 0; i < LOOKED_AT_COUNT; i++) by_number[LOOKED_AT[i].number] = &LOOKED_AT[i];
  pthread_t thread;
  if (pthread_create(&thread, NULL, receive, NULL)) fail("no thread can be started");
  pthread_detach(thread);
}
