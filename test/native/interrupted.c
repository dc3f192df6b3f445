// Calls of the kernel that a checkpoint interrupts. `sleeps MS`: all that sleep for a time, in threads; `signal`: one that
// waits for a signal, beside 48 MB of memory that is not easily compressed.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// By an instruction beside its number, as the C library and Go call.
#ifdef __aarch64__
#define CALL(number, a, b, c, d) \
  ({ register long x0 __asm__("x0") = (long)(a), x1 __asm__("x1") = (long)(b), x2 __asm__("x2") = (long)(c); \
     register long x3 __asm__("x3") = (long)(d); \
     __asm__ volatile("mov x8, %4\n svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "i"(number) : "x8", "memory"); x0; })
#else
#define CALL(number, a, b, c, d) \
  ({ long said_; register long r10 __asm__("r10") = (long)(d); \
     __asm__ volatile("mov %1, %%eax\n syscall" : "=&a"(said_) : "i"(number), "D"(a), "S"(b), "d"(c), "r"(r10) \
                      : "rcx", "r11", "memory"); said_; })
#endif

static struct timespec wanted;
static int word;

static void *work(void *number) {
  struct timespec left;
  long said = -1;
  switch ((intptr_t)number) {
    case 0:
      said = CALL(SYS_nanosleep, &wanted, &left, 0, 0);
      break;
    case 1:
      said = clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, &left);
      break;
    case 2:
      said = poll(NULL, 0, (int)(wanted.tv_sec * 1000 + wanted.tv_nsec / 1000000));
      break;
    case 3:
      said = CALL(SYS_futex, &word, FUTEX_WAIT, 0, &wanted) + ETIMEDOUT;
      break;
  }
  return (void *)(intptr_t)said;
}

static void caught(int number) { (void)number; }

int main(int count, char **words) {
  long wait = count > 2 ? atol(words[2]) : 1000;
  wanted = (struct timespec){wait / 1000, wait % 1000 * 1000000};
  struct timespec began, ended;
  clock_gettime(CLOCK_MONOTONIC, &began);
  if (count > 1 && strcmp(words[1], "signal") == 0) {
    uint64_t *memory = malloc(48 << 20), next = 1;
    for (size_t i = 0; i < (48 << 20) / sizeof next; i++) memory[i] = next = next * 6364136223846793005u + 1442695040888963407u;
    signal(SIGUSR1, caught);
    puts("up");
    fflush(stdout);
    int said = pause();
    printf("woken: %d %d\n", said, errno == EINTR && memory[7] != 0);
    return 0;
  }
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  puts("up");
  fflush(stdout);
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(threads[i], &result);
    printf("%d ", (int)(intptr_t)result);
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  double took = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
  printf("%s\n", took * 1000 < (double)wait ? "too soon" : "slept");
  return 0;
}
