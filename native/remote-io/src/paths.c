#include "paths.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "wire.h"

static char **roots;
static size_t root_count;

// The answer: the owner's two numbers, and the directories, each with a zero byte behind it.
void learn_roots(void) {
  struct answer answer = ask(&(struct request){.call = HOME_ROOTS});
  if (answer.result < 0) fail("home refuses remote I/O: %s", strerror(-(int)answer.result));
  if (answer.length < 17 || answer.bytes[answer.length - 1] != 0) fail("home's answer is not understood");
  map_owner(number_at(answer.bytes), number_at(answer.bytes + 8));
  roots = allocate((answer.length + 1) * sizeof *roots);
  for (char *at = (char *)answer.bytes + 16, *end = (char *)answer.bytes + answer.length; at < end; at += strlen(at) + 1)
    if (*at == '/') roots[root_count++] = normal_path("/", at);
  free(answer.bytes);
}

static bool is_below(const char *path, const char *root) {
  size_t length = strlen(root);
  return strncmp(path, root, length) == 0 && (path[length] == 0 || path[length] == '/');
}

bool is_home(const char *path) {
  for (size_t i = 0; i < root_count; i++)
    if (is_below(path, roots[i])) return true;
  return false;
}

bool leads_home(const char *path) {
  for (size_t i = 0; i < root_count; i++)
    if (is_below(roots[i], path) || strcmp(path, "/") == 0) return true;
  return false;
}

char *normal_path(const char *base, const char *path) {
  char *whole = *path == '/' ? copied(path) : printed("%s/%s", base, path);
  char *end = whole;
  for (const char *at = whole; *at;) {
    while (*at == '/') at++;
    size_t length = strcspn(at, "/");
    if (length == 2 && at[0] == '.' && at[1] == '.') {
      while (end > whole && *--end != '/');
    } else if (length > 0 && !(length == 1 && *at == '.')) {
      *end++ = '/';
      memmove(end, at, length);
      end += length;
    }
    at += length;
  }
  if (end == whole) *end++ = '/';
  *end = 0;
  return whole;
}

char *parent_of(const char *path) {
  char *parent = copied(path), *slash = strrchr(parent, '/');
  if (slash == parent) slash++;
  *slash = 0;
  return parent;
}
