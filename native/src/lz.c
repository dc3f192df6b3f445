#include "lz.h"

#include <stdint.h>
#include <string.h>

#define SLOT_BITS 13
#define LEAST_MATCH 4
// The format wants its last bytes to be literal.
#define LITERAL_END 5
#define NO_MATCH_END 12
#define TRIAL 4096

static uint32_t word(const unsigned char *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static size_t slot_of(uint32_t value) { return (value * 2654435761U) >> (32 - SLOT_BITS); }

static size_t equal_bytes(const unsigned char *a, const unsigned char *b, const unsigned char *end) {
  const unsigned char *start = b;
  for (; b + 8 <= end; a += 8, b += 8) {
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    if (x != y) return (size_t)(b - start) + (size_t)__builtin_ctzll(x ^ y) / 8;
  }
  while (b < end && *a == *b) a++, b++;
  return (size_t)(b - start);
}

struct output {
  unsigned char *at, *end;
};

// What does not fit into four bits.
static void put_length(struct output *out, size_t length) {
  if (length < 15) return;
  for (length -= 15; length >= 255; length -= 255) *out->at++ = 255;
  *out->at++ = (unsigned char)length;
}

// Literals and then a copy of what was `offset` bytes before; a copy of 0 bytes: there is none.
static bool put(struct output *out, const unsigned char *literals, size_t count, size_t offset, size_t match) {
  size_t most = 1 + count / 255 + 1 + count + 2 + match / 255 + 1;
  if (most > (size_t)(out->end - out->at)) return false;
  size_t rest = match == 0 ? 0 : match - LEAST_MATCH;
  *out->at++ = (unsigned char)((count < 15 ? count : 15) << 4 | (rest < 15 ? rest : 15));
  put_length(out, count);
  memcpy(out->at, literals, count);
  out->at += count;
  if (match == 0) return true;
  *out->at++ = (unsigned char)offset;
  *out->at++ = (unsigned char)(offset >> 8);
  put_length(out, rest);
  return true;
}

size_t lz_compress(const unsigned char *from, size_t bytes, unsigned char *to, size_t room) {
  uint16_t seen[1 << SLOT_BITS] = {0};
  struct output out = {to, to + room};
  const unsigned char *anchor = from, *end = from + bytes;
  const unsigned char *last = bytes > NO_MATCH_END ? end - NO_MATCH_END : from;
  for (const unsigned char *at = from; at < last;) {
    uint32_t value = word(at);
    uint16_t *slot = &seen[slot_of(value)];
    const unsigned char *before = from + *slot;
    *slot = (uint16_t)(at - from);
    if (before >= at || word(before) != value) {
      // The longer nothing is found, the faster it goes on.
      at += 1 + ((size_t)(at - anchor) >> 6);
      continue;
    }
    while (at > anchor && before > from && at[-1] == before[-1]) at--, before--;
    size_t match = LEAST_MATCH + equal_bytes(before + LEAST_MATCH, at + LEAST_MATCH, end - LITERAL_END);
    if (!put(&out, anchor, (size_t)(at - anchor), (size_t)(at - before), match)) return 0;
    anchor = at += match;
    // What shrinks by little is not worth the time that it takes to find that.
    if (at - from > TRIAL && (size_t)(out.at - to) > (size_t)(at - from) / 4 * 3) return 0;
  }
  return put(&out, anchor, (size_t)(end - anchor), 0, 0) ? (size_t)(out.at - to) : 0;
}

static bool take_length(const unsigned char **at, const unsigned char *end, size_t *length) {
  if (*length < 15) return true;
  for (unsigned char more = 255; more == 255; *length += more) {
    if (*at == end || *length > (1 << 24)) return false;
    more = *(*at)++;
  }
  return true;
}

static void copy_match(unsigned char *to, size_t offset, size_t match) {
  const unsigned char *from = to - offset;
  if (offset >= match) {
    memcpy(to, from, match);
  } else if (offset == 1) {
    memset(to, *from, match);
  } else {
    for (; offset >= 8 && match >= 8; match -= 8, to += 8, from += 8) memcpy(to, from, 8);
    while (match-- > 0) *to++ = *from++;
  }
}

bool lz_decompress(const unsigned char *from, size_t stored, unsigned char *to, size_t bytes) {
  const unsigned char *at = from, *end = from + stored;
  unsigned char *start = to, *full = to + bytes;
  while (at < end) {
    unsigned char token = *at++;
    size_t count = token >> 4, match = token & 15;
    if (!take_length(&at, end, &count) || count > (size_t)(end - at) || count > (size_t)(full - to)) return false;
    memcpy(to, at, count);
    at += count;
    to += count;
    if (at == end) break;
    if (end - at < 2) return false;
    size_t offset = (size_t)(at[0] | at[1] << 8);
    at += 2;
    if (!take_length(&at, end, &match)) return false;
    match += LEAST_MATCH;
    if (offset == 0 || offset > (size_t)(to - start) || match > (size_t)(full - to)) return false;
    copy_match(to, offset, match);
    to += match;
  }
  return to == full;
}
