// The earlier images that an image is based on.
#ifndef BASE_H
#define BASE_H

#include <stdbool.h>

#include "image.h"

// A table of blocks by their content.
struct known {
  struct image_block *slots;  // without bytes: free
  size_t room, count;
};

// The block with the content of `like`, or NULL.
const struct image_block *known_find(const struct known *known, const struct image_block *like);
void known_add(struct known *known, const struct image_block *block);

struct bases {
  uint32_t count;
  struct image_base of[MOST_BASES];
  char *paths[MOST_BASES];
};

// Chooses what a new image is based on, and enters its blocks. An image that cannot be read is none.
void choose_bases(const char *path, struct bases *bases, struct known *known);
// Gives the bases their names beside the new image at `path`, of which there may be one already.
void name_bases(const char *path, const struct bases *bases);
// Removes the bases beside an image that it does not have.
void drop_bases(const char *path, const struct bases *bases);

#endif
