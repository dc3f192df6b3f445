/** HTCondor's universes by number; the obsolete ones are only known by name. */
export const UNIVERSE = {
  vanilla: 5,
  scheduler: 7,
  mpi: 8,
  grid: 9,
  java: 10,
  parallel: 11,
  local: 12,
  vm: 13,
} as const;
