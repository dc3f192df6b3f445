// The files of a sandbox, to and from an image.
#ifndef FILES_H
#define FILES_H

#include "job.h"
#include "reader.h"

void write_files(const struct request *request);
// Writes a file's content, and says where it is.
struct image_block *write_file_blocks(int file, const char *name, uint64_t bytes, size_t *count);
// Makes the sandbox, a directory that is open, contain the image's files and nothing else but `keep`.
void restore_files(const struct image *image, int sandbox, const char *const *keep, size_t keeps);

#endif
