# Gryphus: runs a program, waits for it, and records how it ended as reported by wait4(2):
#   waiter /bin/sh -c 'exec "$@"' sh PROGRAM ARGUMENT...
# If the kernel cannot execute PROGRAM itself (a script without an interpreter line, a name to be looked up in PATH),
# the shell given before it does.
# The record is one line of eight numbers, each of 16 hexadecimal digits: wait status; user and system time, each in
# seconds and microseconds; maximum resident memory in KB; time of the end, in seconds and nanoseconds since 1970. It is
# written to descriptor 9, or to 7 if 9 has no space left; then to 8. These three are closed in the program. Exit status: 0,
# or 218 if neither 9 nor 7 took the record, or 219 if no process could be created. The waiter blocks all signals, so
# only KILL ends it before its program, and the program is then killed too. As the first process of a process namespace, which
# the job of another pool has, it gives its program a keyring of its own, since whoever inherits one may use the keys in it,
# and takes the system calls for keys from it: those that it leaves with its account would be there for the next job's.
# r12: the initial stack pointer; r13: the environment; r14: our process id; rbx: the program.
.intel_syntax noprefix
.globl _start
.text
_start:
  mov r12, rsp
  sub rsp, 512
  # rt_sigprocmask(SIG_BLOCK, all, &before, 8)
  or qword ptr [rsp], -1
  xor edi, edi
  mov rsi, rsp
  lea rdx, [rsp + 8]
  mov r10d, 8
  mov eax, 14
  syscall
  # getpid()
  mov eax, 39
  syscall
  mov r14d, eax
  mov rax, [r12]
  lea r13, [r12 + rax*8 + 16]
  # vfork()
  mov eax, 58
  syscall
  mov ebx, eax
  test eax, eax
  js none
  jnz parent

  # In the child. prctl(PR_SET_PDEATHSIG, SIGKILL); getppid(): the waiter may already be dead
  mov edi, 1
  mov esi, 9
  mov eax, 157
  syscall
  mov eax, 110
  syscall
  cmp eax, r14d
  jne gone
  # As the first process of a namespace, keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0)
  cmp r14d, 1
  jne keyless
  mov edi, 1
  xor esi, esi
  mov eax, 250
  syscall
  # seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &{12, filter}); older kernels have no such flag
  mov qword ptr [rsp + 16], 12
  lea rdx, [rip + filter]
  mov [rsp + 24], rdx
  lea rdx, [rsp + 16]
  mov ebp, 4
filtering:
  mov edi, 1
  mov esi, ebp
  mov eax, 317
  syscall
  test eax, eax
  jz keyless
  sub ebp, 4
  jns filtering
keyless:
  # close(9), close(8), close(7)
  mov ebp, 9
closing:
  mov edi, ebp
  mov eax, 3
  syscall
  dec ebp
  cmp ebp, 7
  jge closing
  # rt_sigprocmask(SIG_SETMASK, &before, 0, 8)
  mov edi, 2
  lea rsi, [rsp + 8]
  xor edx, edx
  mov r10d, 8
  mov eax, 14
  syscall
  # execve from the sixth argument word; if that fails, from the second
  mov rdi, [r12 + 48]
  lea rsi, [r12 + 48]
  mov rdx, r13
  mov eax, 59
  syscall
  mov rdi, [r12 + 16]
  lea rsi, [r12 + 16]
  mov rdx, r13
  mov eax, 59
  syscall
gone:
  # exit(127)
  mov edi, 127
  mov eax, 60
  syscall

parent:
  # wait4(program, &status, 0, &usage)
  mov edi, ebx
  mov qword ptr [rsp + 16], 0
  lea rsi, [rsp + 16]
  xor edx, edx
  lea r10, [rsp + 24]
  mov eax, 61
  syscall
  # clock_gettime(CLOCK_REALTIME, after the first five numbers of the usage)
  xor edi, edi
  lea rsi, [rsp + 64]
  mov eax, 228
  syscall
  # Format the record line
  lea rsi, [rsp + 16]
  lea rdi, [rsp + 256]
  mov ecx, 8
words:
  lodsq
  mov edx, 16
digits:
  rol rax, 4
  mov ebx, eax
  and ebx, 15
  cmp ebx, 10
  jb low
  add ebx, 39
low:
  add ebx, 48
  mov [rdi], bl
  inc rdi
  dec edx
  jnz digits
  mov byte ptr [rdi], 32
  inc rdi
  dec ecx
  jnz words
  mov byte ptr [rdi - 1], 10
  mov ebp, 218
  mov edi, 9
  call put
  je kept
  mov edi, 7
  call put
  jne told
kept:
  xor ebp, ebp
told:
  mov edi, 8
  call put
over:
  # exit_group
  mov edi, ebp
  mov eax, 231
  syscall
none:
  mov ebp, 219
  jmp over

put:
  # write(edi, line, 136); sets "equal" if all of it was written
  lea rsi, [rsp + 264]
  mov edx, 136
  mov eax, 1
  syscall
  cmp rax, rdx
  ret

# add_key, request_key and keyctl do not exist (ENOSYS): 248 to 250 of x86-64 (and of x32), 286 to 288 of i386.
# Each line: code, where to go on if true and if not (so many lines further), value.
.macro line code, true, false, value
  .short \code
  .byte \true, \false
  .long \value
.endm
filter:
  line 0x20, 0, 0, 4
  line 0x15, 0, 4, 0xc000003e
  line 0x20, 0, 0, 0
  line 0x54, 0, 0, 0xbfffffff
  line 0x35, 0, 5, 248
  line 0x25, 4, 5, 250
  line 0x15, 0, 3, 0x40000003
  line 0x20, 0, 0, 0
  line 0x35, 0, 1, 286
  line 0x25, 0, 1, 288
  line 0x06, 0, 0, 0x7fff0000
  line 0x06, 0, 0, 0x00050026
