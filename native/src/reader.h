// An image as it is read: every number in it has been checked.
#ifndef READER_H
#define READER_H

#include <stdbool.h>

#include "image.h"

struct content {
  uint64_t bytes;
  struct image_block *blocks;
  size_t count;
};

struct read_file {
  struct image_file file;
  char *name;
  char *target;  // of a link
  struct content content;
};

struct read_description {
  struct image_description description;
  char *path;
  struct content content;
};

struct read_thread {
  struct image_thread thread;
  const unsigned char *state;
};

struct read_map {
  struct image_map map;
  char *path;
};

struct read_process {
  struct image_process process;
  char *directory, *program;
  struct image_fd *fds;
  struct read_thread *threads;
  struct image_signal *signals;
  struct image_lock *locks;
  struct read_map *maps;
  struct image_pages *pages;
  size_t fd_count, thread_count, signal_count, lock_count, map_count, page_count;
};

struct image {
  struct image_header header;
  const char *path;
  int files[MOST_BASES + 1];  // it, and its bases
  struct image_job job;
  char *sandbox;
  struct read_file *sandbox_files;
  struct read_description *descriptions;
  struct image_lock *locks;  // of descriptions
  struct read_process *processes;
  size_t file_count, description_count, lock_count, process_count;
  uint64_t bytes;
};

// Ends with a sentence if the file is no whole image, or one that this program did not make.
struct image *read_image(const char *path);
void close_image(const struct image *image);
// The content of a block, which is checked: its `bytes`.
void read_block(const struct image *image, const struct image_block *block, unsigned char *to);
void each_block(const struct image *image, void (*call)(const struct image_block *block, void *with), void *with);
// Writes content to a file, at its position. False with errno if that fails.
bool write_content_to(int file, const struct image *image, const struct content *content);
// Where the base of an image is.
char *base_path(const char *image, uint64_t id);
// A name that stays below a directory: relative, without empty parts, "." or "..".
bool is_below(const char *name);

#endif
