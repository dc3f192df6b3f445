// Four threads that pass a number around under a mutex and a condition, and a recursive mutex that is always held.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, deep;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static long turn, rounds;
static uint64_t value = 1;

static void *work(void *number) {
  long own = (long)(intptr_t)number;
  double sum = 0;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (turn % THREADS != own && turn < rounds) pthread_cond_wait(&turn_changed, &lock);
    if (turn >= rounds) break;
    value = value * 6364136223846793005u + (uint64_t)own;
    for (int i = 1; i < 200; i++) sum += 1.0 / i;
    turn++;
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&lock);
  }
  pthread_cond_broadcast(&turn_changed);
  pthread_mutex_unlock(&lock);
  double *result = malloc(sizeof *result);
  *result = sum;
  return result;
}

int main(int count, char **words) {
  rounds = count > 1 ? atol(words[1]) : 100000;
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&deep, &recursive);
  pthread_mutex_lock(&deep);
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
  for (int i = 0; i < THREADS; i++) {
    void *sum;
    pthread_join(threads[i], &sum);
    pthread_mutex_lock(&deep);
    printf("%.17g\n", *(double *)sum);
  }
  printf("%lx after %ld\n", (unsigned long)value, turn);
  return 7;
}
