#include "base.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader.h"
#include "say.h"

static struct image_block *place_of(const struct known *known, const struct image_block *like) {
  size_t at = like->hash[0] & (known->room - 1);
  for (;; at = (at + 1) & (known->room - 1)) {
    struct image_block *slot = &known->slots[at];
    if (slot->bytes == 0) return slot;
    if (slot->hash[0] == like->hash[0] && slot->hash[1] == like->hash[1] && slot->bytes == like->bytes) return slot;
  }
}

const struct image_block *known_find(const struct known *known, const struct image_block *like) {
  if (known->count == 0) return NULL;
  const struct image_block *found = place_of(known, like);
  return found->bytes == 0 ? NULL : found;
}

void known_add(struct known *known, const struct image_block *block) {
  if (known->count * 2 >= known->room) {
    struct known more = {.room = known->room == 0 ? 1024 : known->room * 2, .count = known->count};
    more.slots = allocate(more.room * sizeof *more.slots);
    for (size_t i = 0; i < known->room; i++)
      if (known->slots[i].bytes != 0) *place_of(&more, &known->slots[i]) = known->slots[i];
    free(known->slots);
    *known = more;
  }
  struct image_block *slot = place_of(known, block);
  if (slot->bytes == 0) known->count++;
  *slot = *block;
}

static struct image *read_if_whole(const char *path) {
  jmp_buf instead;
  if (setjmp(instead)) {
    fail_instead = NULL;
    return NULL;
  }
  fail_instead = &instead;
  struct image *image = read_image(path);
  fail_instead = NULL;
  return image;
}

struct bytes_used {
  uint64_t in[MOST_BASES + 1];
};

static void count_block(const struct image_block *block, void *with) {
  ((struct bytes_used *)with)->in[block->file] += block->stored;
}

struct entering {
  struct known *known;
  uint32_t becomes[MOST_BASES + 1];
};

static void enter_block(const struct image_block *block, void *with) {
  const struct entering *entering = with;
  struct image_block one = *block;
  one.file = entering->becomes[block->file];
  if (one.file != 0) known_add(entering->known, &one);
}

void choose_bases(const char *path, struct bases *bases, struct known *known) {
  struct image *image = path ? read_if_whole(path) : NULL;
  if (!image) return;
  struct bytes_used used = {0};
  each_block(image, count_block, &used);
  struct entering entering = {.known = known};
  uint32_t files = image->header.base_count + 1, least = 0;
  for (uint32_t i = 1; i < files; i++)
    if (used.in[i] < used.in[least]) least = i;
  for (uint32_t i = 0; i < files; i++) {
    uint64_t bytes = i == 0 ? image->bytes : image->header.bases[i - 1].bytes;
    // What is mostly no longer used is written anew, and so is the smallest part when they are too many.
    if (used.in[i] * 2 < bytes || (files > MOST_BASES && i == least)) continue;
    struct image_base base = {.id = i == 0 ? image->header.id : image->header.bases[i - 1].id, .bytes = bytes};
    bases->paths[bases->count] = i == 0 ? printed("%s", path) : base_path(path, base.id);
    bases->of[bases->count] = base;
    entering.becomes[i] = ++bases->count;
  }
  each_block(image, enter_block, &entering);
  close_image(image);
}

void name_bases(const char *path, const struct bases *bases) {
  for (uint32_t i = 0; i < bases->count; i++) {
    const char *name = base_path(path, bases->of[i].id);
    if (strcmp(name, bases->paths[i]) == 0) continue;
    if (link(bases->paths[i], name) && errno != EEXIST) fail_errno("%s cannot be named %s", bases->paths[i], name);
  }
}

static bool is_base(const char *name, const char *image, const struct bases *bases) {
  for (uint32_t i = 0; i < bases->count; i++)
    if (strcmp(name, base_path(image, bases->of[i].id)) == 0) return true;
  return false;
}

void drop_bases(const char *path, const struct bases *bases) {
  char *directory = printed("%s", path), *image = printed("%s", path);
  const char *above = dirname(directory), *last = basename(image);
  DIR *entries = opendir(above);
  size_t length = strlen(last);
  for (struct dirent *entry; entries && (entry = readdir(entries));) {
    const char *name = entry->d_name;
    bool ours = strncmp(name, last, length) == 0 && name[length] == '.' && strlen(name) == length + 17 &&
                strspn(name + length + 1, "0123456789abcdef") == 16;
    if (ours && !is_base(name, last, bases)) unlinkat(dirfd(entries), name, 0);
  }
  if (entries) closedir(entries);
}
