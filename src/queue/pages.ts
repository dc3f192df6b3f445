/** Procs in one page of bits, as the scripts keep them (lua/prelude.lua). */
export const PAGE = 1024;
