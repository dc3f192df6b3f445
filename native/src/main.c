// gryphus-helper: checkpoints of unmodified programs, and their restoration. docs/checkpoints.md explains how it works.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end-as.h"
#include "job.h"
#include "nest.h"
#include "probe.h"
#include "restore.h"
#include "say.h"

static const char USAGE[] =
    "gryphus-helper dump (--pid P | --below P) --sandbox DIR --to FILE [--stdin FILE] [--stdout FILE] [--stderr FILE]\n"
    "               [--skip NAME]… [--base IMAGE] [--kill]   write the image of a process and all that it started\n"
    "gryphus-helper check (the same options but --to and --kill)   say what cannot be carried\n"
    "gryphus-helper restore --from FILE --sandbox DIR [--skip NAME]… [--report FILE] [--environment NAME=VALUE]\n"
    "               go on from an image, with the streams that it is given\n"
    "gryphus-helper inspect FILE   show what an image has\n"
    "gryphus-helper probe   try it on this machine, and print what images of it need\n"
    "gryphus-helper run PROGRAM [ARGUMENT]…   start a program that may be checkpointed later\n"
    "gryphus-helper nest … -- COMMAND   start a program that another engine may checkpoint, or let the engine restore it\n"
    "gryphus-helper pack …   write the image of another engine\n";

static _Noreturn void usage(void) {
  fputs(USAGE, stderr);
  exit(2);
}

static const char *absolute(const char *path) {
  char *whole = realpath(path, NULL);
  if (!whole) fail_errno("%s", path);
  return whole;
}

// Options that have a value take the next word.
static struct request options(char **words, const char **from) {
  struct request request = {0};
  for (; *words; words++) {
    const char *word = *words;
    if (strcmp(word, "--kill") == 0) {
      request.kill = true;
      continue;
    }
    const char *value = *++words;
    if (!value) usage();
    if (strcmp(word, "--pid") == 0 || strcmp(word, "--below") == 0) {
      request.pid = atoi(value);
      request.below = word[2] == 'b';
    } else if (strcmp(word, "--sandbox") == 0) {
      request.sandbox = absolute(value);
    } else if (strcmp(word, "--to") == 0) {
      request.to = value;
    } else if (strcmp(word, "--base") == 0) {
      request.base = value;
    } else if (strcmp(word, "--from") == 0) {
      *from = value;
    } else if (strcmp(word, "--stdin") == 0) {
      request.streams[0] = value;
    } else if (strcmp(word, "--stdout") == 0) {
      request.streams[1] = value;
    } else if (strcmp(word, "--stderr") == 0) {
      request.streams[2] = value;
    } else if (strcmp(word, "--environment") == 0) {
      request.environment = value;
    } else if (strcmp(word, "--report") == 0) {
      request.report = value;
    } else if (strcmp(word, "--skip") == 0) {
      request.skip = grown(request.skip, request.skips, sizeof *request.skip);
      request.skip[request.skips++] = value;
    } else {
      usage();
    }
  }
  if (!request.sandbox) usage();
  return request;
}

static int inspect(const char *path) {
  const struct image *image = read_image(path);
  printf("%lu bytes, %u bases, %zu processes, %zu files, sandbox %s\n", image->bytes, image->header.base_count,
         image->process_count, image->file_count, image->sandbox);
  printf("standard output had %lu bytes, standard error %lu\n", image->header.stdout_bytes, image->header.stderr_bytes);
  for (size_t i = 0; i < image->process_count; i++) {
    const struct read_process *process = &image->processes[i];
    uint64_t memory = 0;
    for (size_t k = 0; k < process->page_count; k++) memory += process->pages[k].block.bytes;
    printf("process %d (%s): %zu threads, %lu KB of memory in %zu maps, %zu descriptors\n", process->process.pid,
           process->threads[0].thread.name, process->thread_count, memory / 1024, process->map_count, process->fd_count);
  }
  return 0;
}

static int check(const struct request *request) {
  const struct job *job = collect(request, false);
  for (size_t i = 0; i < job->reason_count; i++) printf("%s\n", job->reasons[i]);
  return job->reason_count > 0;
}

static _Noreturn void run(char **words) {
  if (!*words) usage();
  // A kernel that lets only parents trace has to be told.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  // A pipe or socket that it was given by accident could not be carried.
  closefrom(3);
  execvp(words[0], words);
  fprintf(stderr, "gryphus-helper: %s cannot be started: %s\n", words[0], strerror(errno));
  _exit(127);
}

int main(int count, char **words) {
  if (count < 2) usage();
  const char *command = words[1], *from = NULL;
  if (strcmp(command, "run") == 0) run(words + 2);
  if (strcmp(command, "nest") == 0) nest(words + 2);
  if (strcmp(command, "pack") == 0) return pack(words + 2);
  long page = sysconf(_SC_PAGESIZE);
  if (page != (long)PAGE) fail("this kernel's pages have %ld bytes; only those of %lu can be carried", page, PAGE);
  if (strcmp(command, "probe") == 0) return probe();
  if (strcmp(command, "inspect") == 0 && count == 3) return inspect(words[2]);
  if (strcmp(command, "inspect") == 0) usage();
  struct request request = options(words + 2, &from);
  if (strcmp(command, "restore") == 0 && from) {
    int status = restore_job(from, &request);
    // Else whoever reads the report knows that we were killed, and not the job.
    if (request.report) dprintf(say_to, "ended\n");
    end_as(status);
  }
  if (request.pid <= 0) usage();
  if (strcmp(command, "check") == 0) return check(&request);
  if (strcmp(command, "dump") != 0 || !request.to) usage();
  printf("%lu\n", dump_job(&request));
  return 0;
}
