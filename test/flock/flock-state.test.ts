import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FlockMemory, flockPlaces, uptime } from '../../src/flock/flock-state.ts';

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'flock-'));
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

const memory = () => new FlockMemory(flockPlaces({ stateDir }));
const file = (name: string) => join(flockPlaces({ stateDir }).dir, 'partners', `${name}.heard`);

describe('when a partner was last heard', () => {
  it('is written down only while a job depends on it', () => {
    const one = memory();
    one.confirmed('idle', uptime(), false);
    one.confirmed('busy', uptime(), true);
    expect([existsSync(file('idle')), existsSync(file('busy'))]).toEqual([false, true]);
  });

  it('is what a later process finds, from the moment a job depends on it', () => {
    const first = memory();
    first.confirmed('p', uptime() - 60, true);
    // Nothing depended on it any more, and then a job did again.
    first.confirmed('p', uptime() - 20, false);
    expect(Math.round(memory().silence('p'))).toBe(60);
    first.keep('p');
    expect(Math.round(memory().silence('p'))).toBe(20);
  });
});
