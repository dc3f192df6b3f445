import type { RunSpec } from '../../src/pool/wire/wire.ts';

/** A run that ends at once, without files. */
export const JUST_TRUE: RunSpec = {
  executable: { kind: 'there', path: '/bin/true' },
  args: [],
  env: {},
  inputs: [],
  joinStderr: false,
};
