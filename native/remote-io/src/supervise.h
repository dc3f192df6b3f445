// Answers the calls that arrive, until its process ends.
#ifndef SUPERVISE_H
#define SUPERVISE_H

// `listener`: where they arrive. Returns at once.
void supervise(int listener);

#endif
