// arm64: numbers that stay in the registers of SVE and in x7 while a loop runs that calls nothing. `vectors ROUNDS`.
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
  unsigned long rounds = count > 1 ? strtoul(words[1], NULL, 10) : 1000, bad = 0, lanes;
  __asm__("cntd %0" : "=r"(lanes));
  printf("vectors of %lu bytes\n", lanes * 8);
  fflush(stdout);
  for (unsigned long k = 0; k < rounds; k++) {
    unsigned long turns = 300000, seven = k * 77, found, sum;
    __asm__ volatile(
        "mov z9.d, %x[k]\n ptrue p3.d\n mov z10.d, p3/m, %x[k]\n index z11.d, %x[k], #3\n mov x7, %[seven]\n"
        "1: subs %[turns], %[turns], #1\n b.ne 1b\n"
        "mov %[found], x7\n add z9.d, z9.d, z11.d\n add z9.d, z9.d, z10.d\n uaddv d12, p3, z9.d\n fmov %[sum], d12\n"
        : [turns] "+r"(turns), [found] "=&r"(found), [sum] "=&r"(sum)
        : [k] "r"(k), [seven] "r"(seven)
        : "z9", "z10", "z11", "z12", "p3", "x7", "cc");
    bad += found != seven || sum != lanes * 3 * k + 3 * lanes * (lanes - 1) / 2;
  }
  printf("%lu rounds, %lu wrong\n", rounds, bad);
  return bad != 0;
}
