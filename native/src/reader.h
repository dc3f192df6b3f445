// An image as it is read: every number in it has been checked.
#ifndef READER_H
#define READER_H

#include <stdbool.h>

#include "image.h"

struct read_file {
  struct image_file file;
  char *name;
  const unsigned char *content;
};

struct read_description {
  struct image_description description;
  char *path;
  const unsigned char *content;
  uint64_t content_bytes;
};

struct read_thread {
  struct image_thread thread;
  const unsigned char *xsave;
};

struct read_map {
  struct image_map map;
  char *path;
};

struct read_pages {
  struct image_pages pages;
  const unsigned char *content;
};

struct read_process {
  struct image_process process;
  char *directory, *program;
  struct image_fd *fds;
  struct read_thread *threads;
  struct image_signal *signals;
  struct read_map *maps;
  struct read_pages *pages;
  size_t fd_count, thread_count, signal_count, map_count, page_count;
};

struct image {
  struct image_job job;
  char *sandbox;
  struct read_file *files;
  struct read_description *descriptions;
  struct read_process *processes;
  size_t file_count, description_count, process_count;
  uint64_t bytes;
};

// Ends with a sentence if the file is no whole image, or one that this program did not make.
struct image *read_image(const char *path);
// A name that stays below a directory: relative, without empty parts, "." or "..".
bool is_below(const char *name);

#endif
