# Gryphus: the program of start.x64.s for aarch64.
# x19: the initial stack pointer.
.globl _start
.text
_start:
  mov x19, sp
  ldr x9, [x19]
  cmp x9, #2
  b.eq directory
  cmp x9, #3
  b.eq link
  cmp x9, #6
  b.lo bad
  // setsid()
  mov x8, #157
  svc #0
  // rt_sigaction(SIGINT, default, 0, 8); the same for SIGQUIT
  sub sp, sp, #32
  stp xzr, xzr, [sp]
  stp xzr, xzr, [sp, #16]
  mov x20, #2
signals:
  mov x0, x20
  mov x1, sp
  mov x2, #0
  mov x3, #8
  mov x8, #134
  svc #0
  add x20, x20, #1
  cmp x20, #3
  b.ls signals
  // execve from the sixth argument word; if that fails, from the second
  ldr x9, [x19]
  add x20, x19, x9, lsl #3
  add x20, x20, #16
  ldr x0, [x19, #48]
  add x1, x19, #48
  mov x2, x20
  mov x8, #221
  svc #0
  ldr x0, [x19, #16]
  add x1, x19, #16
  mov x2, x20
  mov x8, #221
  svc #0
  mov x0, #127
  b over
directory:
  // mkdirat(AT_FDCWD, directory, 0777)
  mov x0, #-100
  ldr x1, [x19, #16]
  mov x2, #511
  mov x8, #34
  svc #0
  b told
link:
  // linkat(AT_FDCWD, file, AT_FDCWD, link, 0)
  mov x0, #-100
  ldr x1, [x19, #16]
  mov x2, #-100
  ldr x3, [x19, #24]
  mov x4, #0
  mov x8, #37
  svc #0
told:
  cbz x0, over
bad:
  mov x0, #1
over:
  // exit_group
  mov x8, #94
  svc #0
