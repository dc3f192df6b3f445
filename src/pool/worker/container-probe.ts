import { tinyElf } from './tiny-elf.ts';

/*
 * A minimal program for testing a container runtime: it creates the file `ok` in its working directory, and exits with
 * 0 if that succeeded. It needs nothing from the image, so the image contains only this program.
 */

/** Programs that use Linux system calls directly; the code is followed by `ok` and a NUL. */
const PROGRAMS: Readonly<Record<string, { readonly machine: number; readonly code: readonly number[] }>> = {
  // open("ok", O_WRONLY | O_CREAT, 0600); exit(result < 0)
  x64: {
    machine: 62,
    code: [
      [0xb8, 2, 0, 0, 0], // mov eax, 2
      [0x48, 0x8d, 0x3d, 26, 0, 0, 0], // lea rdi, [rip + 26]
      [0xbe, 0x41, 0, 0, 0], // mov esi, 0x41
      [0xba, 0x80, 1, 0, 0], // mov edx, 0600
      [0x0f, 0x05], // syscall
      [0x89, 0xc7], // mov edi, eax
      [0xc1, 0xef, 31], // shr edi, 31
      [0xb8, 60, 0, 0, 0], // mov eax, 60
      [0x0f, 0x05], // syscall
      [0x90, 0x90], // nop
    ].flat(),
  },
  // openat(AT_FDCWD, "ok", O_WRONLY | O_CREAT, 0600); exit(result < 0)
  arm64: {
    machine: 183,
    code: words([
      0x92800c60, // mov x0, #-100
      0x10000121, // adr x1, . + 36
      0x52800822, // mov w2, #0x41
      0x52803003, // mov w3, #0600
      0xd2800708, // mov x8, #56
      0xd4000001, // svc #0
      0x531f7c00, // lsr w0, w0, #31
      0xd2800ba8, // mov x8, #93
      0xd4000001, // svc #0
      0xd503201f, // nop
    ]),
  },
};

function words(instructions: readonly number[]): number[] {
  return instructions.flatMap((one) => [0, 8, 16, 24].map((shift) => (one >>> shift) & 0xff));
}

/** The program for an architecture as Node names it; `undefined` if there is none. */
export function probeProgram(arch: string): Buffer | undefined {
  const found = PROGRAMS[arch];
  if (!found) return undefined;
  return tinyElf(found.machine, Buffer.from([...found.code, 0x6f, 0x6b, 0]));
}
