#include "parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MOST_THREADS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct {
  void (*work)(size_t index, void *with);
  void *with;
  size_t count;
  atomic_size_t next;
} now;
static unsigned round_number;
static int helpers = -1, busy;

static void do_some(void) {
  for (size_t index; (index = atomic_fetch_add(&now.next, 1)) < now.count;) now.work(index, now.with);
}

static void *helper(void *nothing) {
  unsigned seen = 0;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (round_number == seen) pthread_cond_wait(&begun, &lock);
    seen = round_number;
    pthread_mutex_unlock(&lock);
    do_some();
    pthread_mutex_lock(&lock);
    if (--busy == 0) pthread_cond_signal(&done);
    pthread_mutex_unlock(&lock);
  }
  return nothing;
}

// Where no thread can be made, the work is done without.
static void start_helpers(void) {
  cpu_set_t processors;
  int count = sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 1;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  for (helpers = 0; helpers < MOST_THREADS - 1 && helpers < count - 1; helpers++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, helper, NULL)) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void in_parallel(size_t count, void (*work)(size_t index, void *with), void *with) {
  if (count > 1 && helpers < 0) start_helpers();
  pthread_mutex_lock(&lock);
  now.work = work;
  now.with = with;
  now.count = count;
  atomic_store(&now.next, 0);
  bool shared = count > 1 && helpers > 0;
  if (shared) {
    busy = helpers;
    round_number++;
    pthread_cond_broadcast(&begun);
  }
  pthread_mutex_unlock(&lock);
  do_some();
  if (!shared) return;
  pthread_mutex_lock(&lock);
  while (busy > 0) pthread_cond_wait(&done, &lock);
  pthread_mutex_unlock(&lock);
}
