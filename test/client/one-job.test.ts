import { describe, expect, it } from 'vitest';
import { describeJob } from '../../src/client/one-job.ts';

describe('one job', () => {
  it('cannot have what no program can be given', () => {
    expect(() => describeJob({ command: ['echo', 'a\0b'] })).toThrow('An argument has a NUL byte: a b.');
    expect(() => describeJob({ command: ['echo'], env: { FINE: '1', A: 'x\0y' } })).toThrow(
      'The variable A has a NUL byte.',
    );
    expect(() => describeJob({ command: ['echo'], env: { 'A\0': 'x' } })).toThrow('The variable A has a NUL byte.');
  });
});
