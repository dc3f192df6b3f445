#include "image.h"

#include <string.h>

#define PRIME 0x9e3779b97f4a7c15UL

uint64_t hash_start(void) { return PRIME; }

// The sum of pieces equals that of the whole only if all pieces but the last are multiples of 8.
uint64_t hash_more(uint64_t hash, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  for (; length >= 8; at += 8, length -= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    hash = (hash ^ word) * PRIME;
    hash ^= hash >> 32;
  }
  if (length > 0) {
    uint64_t word = 0;
    memcpy(&word, at, length);
    hash = (hash ^ word) * PRIME;
    hash ^= hash >> 32;
  }
  return hash;
}
