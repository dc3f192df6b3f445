// Compression of blocks of at most 64 KB, in the block format of LZ4.
#ifndef LZ_H
#define LZ_H

#include <stdbool.h>
#include <stddef.h>

// Returns the compressed size; 0 if it would be more than `room`, or hardly less than before.
size_t lz_compress(const unsigned char *from, size_t bytes, unsigned char *to, size_t room);
// False if the input is not what makes exactly `bytes`. It reads and writes nothing outside of the two.
bool lz_decompress(const unsigned char *from, size_t stored, unsigned char *to, size_t bytes);

#endif
