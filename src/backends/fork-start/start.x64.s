# Gryphus: what a fork site does for every job, in one small program.
#   start DIRECTORY                                  makes a directory; exit status 0, or 1 if it is there or cannot be made
#   start FILE LINK                                  makes a hard link; exit status 0 or 1
#   start /bin/sh -c 'exec "$@"' sh PROGRAM ARG...   becomes PROGRAM in a session of its own, with INT and QUIT as by default
# If the kernel cannot execute PROGRAM itself (a script without an interpreter line), the shell given before it does.
# r12: the initial stack pointer.
.intel_syntax noprefix
.globl _start
.text
_start:
  mov r12, rsp
  mov rax, [r12]
  cmp rax, 2
  je directory
  cmp rax, 3
  je link
  cmp rax, 6
  jb bad
  # setsid()
  mov eax, 112
  syscall
  # rt_sigaction(SIGINT, default, 0, 8); the same for SIGQUIT
  sub rsp, 32
  xor eax, eax
  mov [rsp], rax
  mov [rsp + 8], rax
  mov [rsp + 16], rax
  mov [rsp + 24], rax
  mov ebx, 2
signals:
  mov edi, ebx
  mov rsi, rsp
  xor edx, edx
  mov r10d, 8
  mov eax, 13
  syscall
  inc ebx
  cmp ebx, 3
  jbe signals
  # execve from the sixth argument word; if that fails, from the second
  mov rax, [r12]
  lea r13, [r12 + rax*8 + 16]
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
  mov edi, 127
  jmp over
directory:
  # mkdir(directory, 0777)
  mov rdi, [r12 + 16]
  mov esi, 511
  mov eax, 83
  syscall
  jmp told
link:
  # link(file, link)
  mov rdi, [r12 + 16]
  mov rsi, [r12 + 24]
  mov eax, 86
  syscall
told:
  xor edi, edi
  test eax, eax
  jz over
bad:
  mov edi, 1
over:
  # exit_group
  mov eax, 231
  syscall
