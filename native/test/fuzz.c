// fuzz IMAGE COUNT SEED: reads an image with COUNT mutations of its header, sections and blocks, one after another. Ends
// with 0 if each was read or refused, and says how many were refused.
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/reader.h"
#include "../src/say.h"

// Refused images leave memory behind.
#define IN_ONE_PROCESS 5000

static unsigned char *whole, *image;
static size_t length;
static const char *path;
static struct image_header header;

static uint64_t next_random(void) {
  static uint64_t state;
  if (state == 0) state = (uint64_t)random() | 1;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static unsigned char other(unsigned char byte) {
  switch (next_random() % 4) {
    case 0:
      return 255;
    case 1:
      return (unsigned char)(byte + 1);
    case 2:
      return (unsigned char)(byte ^ 1U << next_random() % 8);
    default:
      return (unsigned char)next_random();
  }
}

static size_t place(bool in_block) {
  size_t sections = length - header.sections_at;
  if (in_block) return sizeof header + next_random() % (header.sections_at - sizeof header);
  size_t at = next_random() % (sections + sizeof header);
  return at < sizeof header ? at : at - sizeof header + header.sections_at;
}

static void read_if_near(const struct image_block *block, void *with) {
  const size_t at = *(const size_t *)((void **)with)[1];
  unsigned char bytes[BLOCK];
  if (block->file == 0 && at >= block->at && at < block->at + block->stored) read_block(((void **)with)[0], block, bytes);
}

// Whether it was refused.
static bool is_refused(size_t near) {
  jmp_buf instead;
  struct image *volatile read = NULL;
  volatile bool refused = true;
  if (setjmp(instead) == 0) {
    fail_instead = &instead;
    read = read_image(path);
    void *with[] = {read, &near};
    each_block(read, read_if_near, with);
    refused = false;
  }
  fail_instead = NULL;
  if (read) close_image(read);
  closefrom(3);
  return refused;
}

static void mutate(size_t *refused) {
  size_t places[4], count = 1 + next_random() % 4;
  bool cut = next_random() % 64 == 0, in_block = next_random() % 16 == 0;
  for (size_t i = 0; i < count; i++) {
    places[i] = place(in_block);
    image[places[i]] = other(image[places[i]]);
  }
  if (cut && truncate(path, (off_t)(next_random() % length))) exit(2);
  *refused += is_refused(places[0]);
  if (cut && truncate(path, (off_t)length)) exit(2);
  for (size_t i = 0; i < count; i++) image[places[i]] = whole[places[i]];
  if (cut) {
    for (size_t i = 0; i < length; i++) image[i] = whole[i];
  }
}

int main(int words, char **word) {
  if (words != 4) return 2;
  path = word[1];
  size_t count = strtoul(word[2], NULL, 10);
  srandom((unsigned)atoi(word[3]));
  int file = open(path, O_RDWR);
  struct stat found;
  if (file < 0 || fstat(file, &found)) return 2;
  length = (size_t)found.st_size;
  whole = malloc(length);
  image = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (!whole || image == MAP_FAILED || pread(file, whole, length, 0) != (ssize_t)length) return 2;
  __builtin_memcpy(&header, whole, sizeof header);
  size_t *refused = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (is_refused(0)) return 3;
  for (size_t done = 0; done < count; done += IN_ONE_PROCESS) {
    long seed = random();
    pid_t child = fork();
    if (child == 0) {
      srandom((unsigned)seed);
      for (size_t i = 0; i < IN_ONE_PROCESS && done + i < count; i++) mutate(refused);
      _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) {
      fprintf(stderr, "after %zu mutations: status %d\n", done, status);
      return 1;
    }
  }
  printf("%zu of %zu were refused\n", *refused, count);
  return 0;
}
