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

// Four sums side by side, since each multiplication waits for the one before.
void hash_block(const void *bytes, size_t length, uint64_t hash[2]) {
  const unsigned char *at = bytes;
  uint64_t lanes[4] = {PRIME, PRIME * 3, PRIME * 5, PRIME * 7};
  for (; length >= 32; at += 32, length -= 32) {
    uint64_t words[4];
    memcpy(words, at, 32);
    for (int i = 0; i < 4; i++) {
      lanes[i] = (lanes[i] ^ words[i]) * PRIME;
      lanes[i] ^= lanes[i] >> 32;
    }
  }
  uint64_t rest[3] = {hash_more(length, at, length), lanes[2], lanes[3]};
  hash[0] = hash_more(lanes[0], rest, sizeof rest);
  hash[1] = hash_more(lanes[1] * PRIME, rest, sizeof rest);
}
