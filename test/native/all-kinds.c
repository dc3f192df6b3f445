// A small program whose image has sections of every kind: threads, a child, a pipe with content between them, a named and
// an unlinked file, locks of all three kinds, memory that is shared with a file, and a signal that waits.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *work(void *nothing) {
  pause();
  return nothing;
}

int main(void) {
  int ends[2], file = open("file", O_CREAT | O_RDWR, 0600), gone = open("gone", O_CREAT | O_RDWR, 0600);
  if (file < 0 || gone < 0 || unlink("gone") || pipe(ends)) return 1;
  if (write(file, "content", 7) != 7 || write(gone, "data", 4) != 4 || write(ends[1], "pipe", 4) != 4) return 1;
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 2};
  if (flock(gone, LOCK_EX) || fcntl(file, F_OFD_SETLK, &range)) return 1;
  if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED) return 1;
  sigset_t user;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &user, NULL);
  kill(getpid(), SIGUSR1);
  if (symlink("file", "link") || mkdir("directory", 0700)) return 1;
  if (fork() == 0) {
    range.l_start = 5;
    fcntl(file, F_SETLK, &range);
    close(ends[1]);
    pause();
  }
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  close(open("up", O_CREAT | O_WRONLY, 0600));
  if (write(1, "up\n", 3) != 3) return 1;
  pause();
  return 0;
}
