// The image of another engine: the header that every image has, then an archive of what the engine wrote and of the sandbox.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image.h"
#include "nest.h"
#include "say.h"

static uint64_t length_of(const char *path) {
  struct stat found;
  if (!path || stat(path, &found)) return 0;
  return (uint64_t)found.st_size;
}

// tar leaves out what has these names in the sandbox, and what is there but no file.
static void archive(const char *directory, char **names, int to) {
  pid_t tar = fork();
  if (tar < 0) fail_errno("no process can be made");
  if (tar == 0) {
    size_t count = 0;
    while (names[count]) count++;
    char **words = allocate((count + 8) * sizeof *words);
    char *first[] = {"tar", "-c", "--sparse", "-f", "-", "-C", (char *)(uintptr_t)directory};
    memcpy(words, first, sizeof first);
    memcpy(words + 7, names, count * sizeof *names);
    dup2(to, 1);
    execvp("tar", words);
    _exit(127);
  }
  int status;
  while (waitpid(tar, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0) fail("tar cannot write the image");
}

// pack DIRECTORY IMAGE ENGINE STDOUT STDERR WORD…: the words are tar's, names in the directory among them.
int pack(char **words) {
  for (int i = 0; i < 6; i++)
    if (!words[i]) fail("pack DIRECTORY IMAGE ENGINE STDOUT STDERR WORD…");
  const char *path = words[1], *engine = words[2], *fresh = printed("%s.new", path);
  struct image_header header = {.magic = IMAGE_MAGIC, .version = ENGINE_IMAGE_VERSION, .machine = IMAGE_MACHINE};
  if (getrandom(&header.id, sizeof header.id, 0) != sizeof header.id) fail_errno("no id can be made");
  header.sections_at = sizeof header;
  header.stdout_bytes = length_of(words[3]);
  header.stderr_bytes = length_of(words[4]);
  snprintf((char *)header.bases, sizeof header.bases, "%s", engine);
  crash_point("helper.stopped");
  int file = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write(file, &header, sizeof header) != sizeof header) fail_errno("%s cannot be written", fresh);
  archive(words[0], words + 5, file);
  header.sections_bytes = length_of(fresh) - sizeof header;
  if (pwrite(file, &header, sizeof header, 0) != sizeof header || fsync(file)) fail_errno("%s cannot be written", fresh);
  crash_point("helper.written");
  if (rename(fresh, path)) fail_errno("%s cannot be renamed", fresh);
  crash_point("helper.named");
  return 0;
}
