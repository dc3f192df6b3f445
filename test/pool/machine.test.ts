import { expect, it } from 'vitest';
import { gpusOf, memoryOf, type Node } from '../../src/pool/host/machine.ts';

const GB = 2 ** 30;
const node: Node = { cores: 16, memory: 64 * GB, limit: 0, gpus: 4 };

it('offers the memory that is its own of a node', () => {
  expect(memoryOf(16, false, node, {})).toBe(65_536);
  expect(memoryOf(4, false, node, {})).toBe(65_536);
  expect(memoryOf(4, false, { ...node, limit: 8 * GB }, {})).toBe(8192);
  expect(memoryOf(4, false, { ...node, limit: 2 ** 63 }, {})).toBe(65_536);
  // Others have the rest.
  expect(memoryOf(4, true, node, {})).toBe(16_384);
  expect(memoryOf(16, true, node, {})).toBe(65_536);
  expect(memoryOf(4, true, node, { SLURM_MEM_PER_NODE: '6000' })).toBe(6000);
  expect(memoryOf(4, true, node, { SLURM_MEM_PER_CPU: '2000' })).toBe(8000);
  expect(memoryOf(4, true, { ...node, limit: 3 * GB }, { SLURM_MEM_PER_NODE: '6000' })).toBe(3072);
});

it('offers the GPUs that a batch system gave it', () => {
  expect(gpusOf(false, node, { CUDA_VISIBLE_DEVICES: '0' })).toBe(4);
  expect(gpusOf(true, node, { CUDA_VISIBLE_DEVICES: '0,3' })).toBe(2);
  expect(gpusOf(true, node, { CUDA_VISIBLE_DEVICES: 'GPU-8a1b-2c,MIG-1' })).toBe(2);
  for (const none of ['', 'NoDevFiles', '-1']) expect(gpusOf(true, node, { CUDA_VISIBLE_DEVICES: none })).toBe(0);
  expect(gpusOf(true, node, { SLURM_JOB_ID: '7' })).toBe(0);
  expect(gpusOf(true, node, {})).toBe(4);
});
