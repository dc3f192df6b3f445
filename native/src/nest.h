// Namespaces for a job that another engine checkpoints, and the file that such an engine's image is.
#ifndef NEST_H
#define NEST_H

// Both take the words of the command line after their name. `nest` ends as the job did.
_Noreturn void nest(char **words);
int pack(char **words);

#endif
