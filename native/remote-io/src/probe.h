// Tries on this machine what answering a program's calls needs.
#ifndef PROBE_H
#define PROBE_H

// 0 if it works; else 1, and one sentence on standard error says why not.
int probe(void);

#endif
