// What differs between processors: src/arch/ has one file for each.
#ifndef ARCH_H
#define ARCH_H

#include <stdbool.h>

#include "trace.h"

// Where in code that calls the kernel the instruction for that is; NULL: nowhere.
const unsigned char *arch_find_syscall(const unsigned char *code, size_t bytes);
// The instruction itself.
extern const unsigned char arch_syscall[];
extern const size_t arch_syscall_bytes;

// Makes `registers` those of a thread that is about to call the kernel by the instruction at an address.
void arch_call(struct user_regs_struct *registers, uint64_t address, long number, const uint64_t words[6]);
// What the kernel answered.
long arch_result(const struct user_regs_struct *registers);

// The state of a thread beside its registers. Returns its bytes, which are at most `room`. Ends with a sentence if
// there is some that cannot be carried.
size_t arch_state(pid_t tid, unsigned char *state, size_t room);
// False with errno if this processor cannot take it.
bool arch_set_state(pid_t tid, const unsigned char *state, size_t bytes);

// Registers as they are in an image: if an interrupted call was already being made again, they have its own number, so
// that another process can make it. `registers` are as they were read from a stopped thread.
struct user_regs_struct arch_carried(const struct traced *process, const struct user_regs_struct *registers);
// The registers of an image with which a thread goes on in another process: it makes an interrupted call again.
struct user_regs_struct arch_restored(const struct user_regs_struct *carried);
// The registers with which the stopped thread itself goes on: the kernel still knows its interrupted sleep. May let it
// call the kernel, and is called before anything else has.
struct user_regs_struct arch_resumed(const struct traced *process, pid_t tid, const struct user_regs_struct *registers);
// The last registers of a thread that called the kernel for us, and its state if such calls change it.
void arch_put_back(const struct traced *process, pid_t tid, const struct user_regs_struct *registers,
                   const unsigned char *state, size_t bytes);

// What the C library's choices and a thread's state depend on.
uint64_t arch_processor(void);

#endif
