import { describe, expect, it } from 'vitest';
import { Heartbeats } from '../../src/scheduler/heartbeat.ts';

function world() {
  let now = 0;
  const heartbeats = new Heartbeats(() => now);
  return (beat: string, ms: number, pid = 7) => {
    now += ms;
    return heartbeats.look([{ identity: 'me', pid, beat }], 60_000).map((hung) => hung.pid);
  };
}

describe('the heartbeat of a GridManager', () => {
  it('is missed when it stands still for the whole patience', () => {
    const look = world();
    expect(look('a', 0)).toEqual([]);
    for (let t = 5; t < 60; t += 5) expect(look('a', 5000)).toEqual([]);
    expect(look('a', 5000)).toEqual([7]);
  });

  it('beats on with every renewal, and anew in every process', () => {
    const look = world();
    for (let n = 0; n < 100; n++) expect(look(String(Math.floor(n / 5)), 2000)).toEqual([]);
    for (let n = 0; n < 20; n++) expect(look('b', 2000, 8)).toEqual([]);
    for (let n = 0; n < 20; n++) expect(look('b', 2000, 9)).toEqual([]);
  });

  it('is not missed by who did not look: a Scheduler that was stopped, a machine that slept', () => {
    const look = world();
    look('a', 0);
    expect(look('a', 86_400_000)).toEqual([]);
    expect(look('b', 2000)).toEqual([]);
  });
});
