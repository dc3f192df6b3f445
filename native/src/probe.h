#ifndef PROBE_H
#define PROBE_H

// Whether programs can be checkpointed and restored here: it does so with a small one. Prints the platform that images
// made here need. Returns an exit status.
int probe(void);

#endif
