#include "supervise.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "cwd.h"
#include "say.h"

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

static void respond(const struct call *call, struct outcome outcome) {
  struct seccomp_notif_resp response = {.id = call->id};
  if (outcome.kind == AS_IT_IS) {
    response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  } else if (outcome.kind == DESCRIPTOR) {
    struct seccomp_notif_addfd add = {
        .id = call->id,
        .srcfd = (uint32_t)outcome.value,
        .flags = SECCOMP_ADDFD_FLAG_SEND,
        .newfd_flags = outcome.close_on_exec ? 02000000 : 0,
    };
    int given = ioctl(calls, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    int error = errno;
    bool sent = given >= 0;
    if (given < 0 && error == EINVAL) {
      // Linux 5.14 does both at once.
      add.flags = 0;
      given = ioctl(calls, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
      error = errno;
    }
    close((int)outcome.value);
    if (sent) return;
    if (given < 0) response.error = -error;
    else response.val = given;
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
  return how->path < 0 && call->number != SYS_fchdir && !has_objects();
}

static void take(const struct call *call) {
  const struct looked_at *how =
      call->number >= 0 && call->number < NUMBERS ? by_number[call->number] : NULL;
  if (is_free(call, how)) return respond(call, as_it_is());
  struct work work = {.call = *call, .how = how};
  if (call->number == SYS_getcwd) return respond(call, do_getcwd(call, NULL, NULL));
  enum whose whose = operands_of(call, how, &work.one, &work.two);
  if (whose == HOMES) {
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
  for (size_t i = 0; i < LOOKED_AT_COUNT; i++) by_number[LOOKED_AT[i].number] = &LOOKED_AT[i];
  pthread_t thread;
  if (pthread_create(&thread, NULL, receive, NULL)) fail("no thread can be started");
  pthread_detach(thread);
}
