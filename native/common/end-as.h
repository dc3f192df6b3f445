// Ends this process as another did.
#ifndef END_AS_H
#define END_AS_H

// With the exit status or by the signal of wait(2)'s `status`. A core, if there is one, is the other's.
_Noreturn void end_as(int status);

#endif
