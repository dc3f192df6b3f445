import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CredentialAction,
  DEFAULT_WATCH,
  type Memories,
  type RemoteCopy,
  type Watched,
  type WatchedJob,
} from '../../src/credentials/watch/model.ts';
import { renewed } from '../../src/credentials/watch/renewal.ts';
import { mayUse } from '../../src/credentials/watch/usability.ts';
import { look } from '../../src/credentials/watch/watch.ts';
import { credentialNews } from '../../src/notify/messages.ts';

const HOUR = 3600;
const proxy = (more: Partial<Watched> = {}): Watched => ({
  name: 'jane',
  what: 'X.509 proxy',
  start: 0,
  end: 12 * HOUR,
  version: 'v1',
  renews: false,
  holds: true,
  type: ['gryphus cred proxy init'],
  ...more,
});
const job = (proc: number, where: WatchedJob['where'] = 'waiting', needs = ['jane']): WatchedJob => ({
  id: { cluster: 1, proc },
  site: 'alpha',
  needs,
  where,
});

/** A minimal Scheduler: what it stores, and what it does with the actions. */
class World {
  now = 0;
  credentials = new Map<string, Watched>();
  jobs: WatchedJob[] = [];
  copies: RemoteCopy[] = [];
  memories: Memories = {};
  readonly config = DEFAULT_WATCH;
  readonly alarms: string[] = [];
  nextLook: number | undefined;

  look(now = this.now): readonly CredentialAction[] {
    const { credentials, jobs, copies, memories, config } = this;
    const seen = look({ now, credentials: [...credentials.values()], jobs, copies, memories, config });
    this.nextLook = seen.nextLook;
    this.memories = seen.memories;
    for (const action of seen.actions) this.#do(action);
    return seen.actions;
  }

  /** The check was saved, but the actions that it requested were lost. */
  crash(): void {
    const { now, credentials, jobs, copies, memories, config } = this;
    this.memories = look({ now, credentials: [...credentials.values()], jobs, copies, memories, config }).memories;
  }

  #do(action: CredentialAction): void {
    const move = (ids: readonly { proc: number }[], from: WatchedJob['where'], to: WatchedJob['where']) => {
      for (const { proc } of ids) {
        const at = this.jobs.findIndex((one) => one.id.proc === proc);
        const found = this.jobs[at];
        assert.equal(found?.where, from);
        if (found !== undefined) this.jobs[at] = { ...found, where: to };
      }
    };
    switch (action.do) {
      case 'alarm':
        this.alarms.push(action.news.key);
        break;
      case 'hold':
        assert.equal(action.code, 4);
        move(action.jobs, 'waiting', 'held');
        break;
      case 'release':
        move(action.jobs, 'held', 'waiting');
        break;
      case 'refresh':
        this.copies = this.copies.map((one) =>
          one.credential === action.credential && one.site === action.site ? { ...one, version: action.version } : one,
        );
        break;
      case 'renew':
        break;
    }
  }

  renewal(name: string, problem?: string): void {
    const [memory, credential] = [this.memories[name], this.credentials.get(name)];
    if (memory === undefined || credential === undefined) return;
    const renewal = renewed(memory.renewal, credential, this.now, this.config, problem);
    this.memories = { ...this.memories, [name]: { ...memory, renewal } };
  }

  set(credential: Watched): void {
    this.credentials.set(credential.name, credential);
  }

  /** Runs until `until`, on the clock that `nextLook` sets. */
  run(until: number): readonly CredentialAction[] {
    const all = [...this.look()];
    for (let turns = 0; this.nextLook !== undefined && this.nextLook <= until; turns++) {
      assert.ok(turns < 1000);
      assert.ok(this.nextLook > this.now);
      this.now = this.nextLook;
      all.push(...this.look());
    }
    this.now = until;
    all.push(...this.look());
    return all;
  }
}

const names = (actions: readonly CredentialAction[]) =>
  actions.map((one) => (one.do === 'alarm' ? one.news.news : one.do));

describe('the watch over credentials', () => {
  it('warns, holds at the end, and after the renewal releases, refreshes and says so', () => {
    const world = new World();
    world.set(proxy());
    world.jobs = [job(0), job(1, 'there')];
    world.copies = [{ credential: 'jane', site: 'alpha', version: 'v1' }];
    expect(names(world.run(12 * HOUR))).toEqual(['ending', 'ending', 'ended', 'hold']);
    expect(world.jobs.map((one) => one.where)).toEqual(['held', 'there']);
    world.set(proxy({ start: 12 * HOUR, end: 24 * HOUR, version: 'v2' }));
    expect(names(world.look())).toEqual(['fresh', 'release', 'refresh']);
    expect(world.jobs.map((one) => one.where)).toEqual(['waiting', 'there']);
    expect(world.copies[0]?.version).toBe('v2');
    expect(world.look()).toEqual([]);
  });

  it('carries one job over three ends', () => {
    const world = new World();
    world.jobs = [job(0)];
    for (let round = 1; round <= 3; round++) {
      const start = world.now;
      world.set(proxy({ start, end: start + 12 * HOUR, version: `v${round}` }));
      world.run(start + 12 * HOUR + 5);
      expect(world.jobs[0]?.where).toBe('held');
    }
    world.set(proxy({ start: world.now, end: world.now + HOUR, version: 'v4' }));
    world.look();
    expect(world.jobs[0]?.where).toBe('waiting');
    expect(world.alarms).toHaveLength(3 * 3 + 3);
    expect(new Set(world.alarms).size).toBe(world.alarms.length);
  });

  it('gives one alarm for all jobs, and one for all times that passed unwatched', () => {
    const world = new World();
    world.set(proxy({ start: -1000 * HOUR }));
    world.jobs = Array.from({ length: 500 }, (_, i) => job(i));
    world.now = 11.5 * HOUR;
    const [alarm, ...more] = world.look();
    expect(more).toEqual([]);
    expect(alarm).toMatchObject({ do: 'alarm', news: { news: 'ending', key: 'jane ends 43200 3600' } });
    expect(alarm?.do === 'alarm' && credentialNews(alarm.news).subject).toContain('ends in 30 min');
    expect(world.alarms).toHaveLength(1);
  });

  it('says nothing of a credential that no job uses', () => {
    const world = new World();
    world.set(proxy());
    expect(world.run(13 * HOUR)).toEqual([]);
  });

  it('does not warn a day before the end of what lives half a day, and warns in time of what lives two minutes', () => {
    const world = new World();
    world.jobs = [job(0)];
    world.set(proxy({ end: 120 }));
    const times = [];
    for (world.now = 0; world.now < 130; world.now++) if (world.look().length > 0) times.push(world.now);
    expect(times).toEqual([90, 108]); // an alarm at a quarter of its life before the end; held a tenth before
  });

  it('waits for a file that is being written, and holds when it stays away', () => {
    const world = new World();
    world.jobs = [job(0)];
    world.set(proxy());
    world.look();
    world.set(proxy({ problem: 'there is no file /tmp/x.' }));
    world.now = 10;
    expect(world.look()).toEqual([]);
    expect(mayUse(['jane'], world.credentials, world.now, world.config).is).toBe('unusable');
    world.set(proxy());
    expect(world.look()).toEqual([]);
    world.set(proxy({ problem: 'there is no file /tmp/x.' }));
    expect(names(world.run(world.now + DEFAULT_WATCH.grace))).toEqual(['broken', 'hold']);
    world.set(proxy());
    expect(names(world.look())).toEqual(['fresh', 'release']);
  });

  it('holds jobs whose credential is unknown, until it exists', () => {
    const world = new World();
    world.jobs = [job(0, 'waiting', ['other'])];
    expect(world.look()).toMatchObject([
      { do: 'hold', reason: expect.stringContaining("There is no credential 'other'") },
    ]);
    world.set(proxy({ name: 'other' }));
    expect(names(world.look())).toEqual(['release']);
  });

  it('bears a credential from a clock that is some minutes ahead, and no more', () => {
    const world = new World();
    world.jobs = [job(0)];
    world.set(proxy({ start: 299 }));
    expect(world.look()).toEqual([]);
    world.set(proxy({ start: 500 }));
    expect(names(world.look())).toEqual(['broken', 'hold']);
    expect(names(world.run(200))).toEqual(['fresh', 'release']);
  });

  it('renews by itself at half of the life, says nothing while that works', () => {
    const world = new World();
    world.jobs = [job(0)];
    world.set(proxy({ renews: true }));
    world.look();
    expect(world.nextLook).toBeGreaterThan(5 * HOUR);
    world.now = 6 * HOUR;
    expect(names(world.look())).toEqual(['renew']);
    expect(world.look()).toEqual([]);
    world.set(proxy({ renews: true, start: 6 * HOUR, end: 18 * HOUR, version: 'v2' }));
    world.renewal('jane');
    expect(world.look()).toEqual([]);
  });

  it('retries with growing pauses, and warns when it must', () => {
    const world = new World();
    world.jobs = [job(0)];
    world.set(proxy({ renews: true }));
    const tries: number[] = [];
    while (world.now < 13 * HOUR) {
      if (names(world.look()).includes('renew')) {
        tries.push(world.now);
        world.renewal('jane', 'The MyProxy server does not answer.');
        world.look();
      }
      world.now = world.nextLook ?? 14 * HOUR;
    }
    const pauses = tries.slice(1).map((at, i) => at - (tries[i] ?? 0));
    expect(pauses[0]).toBeLessThanOrEqual(60);
    expect(Math.max(...pauses)).toBeGreaterThan(1200);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(3600);
    expect(world.alarms).toEqual(['jane ends 43200 21600', 'jane ends 43200 3600', 'jane ended 43200']);
    expect(tries.at(-1)).toBeGreaterThan(12 * HOUR);
  });

  it('starts a renewal again that a crash has swallowed, and one that a clock set back has put into the future', () => {
    const world = new World();
    world.jobs = [job(0)];
    world.set(proxy({ renews: true }));
    world.now = 7 * HOUR;
    expect(names(world.look())).toEqual(['renew']);
    world.now += DEFAULT_WATCH.renewTimeout;
    expect(names(world.look())).toEqual(['renew']);
    world.now -= HOUR;
    expect(names(world.look())).toEqual(['renew']);
  });

  it('does not wait a day for a retry because the clock was a day ahead', () => {
    const world = new World();
    world.jobs = [job(0)];
    world.set(proxy({ end: 96 * HOUR, renews: true }));
    world.now = 80 * HOUR;
    world.look();
    world.renewal('jane', 'It is down.');
    world.now = 74 * HOUR;
    expect(names(world.look())).toContain('renew');
  });

  it('tells of a credential that only feeds others, and holds no job for it', () => {
    const world = new World();
    world.jobs = [job(0)];
    world.set(proxy({ holds: false }));
    expect(names(world.run(13 * HOUR))).toEqual(['ending', 'ending', 'ended']);
    expect(world.jobs[0]?.where).toBe('waiting');
  });
});

describe('whatever happens', () => {
  const CREDENTIALS = ['a', 'b', 'c'];
  const which = fc.nat(CREDENTIALS.length - 1);
  const event = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), by: fc.integer({ min: 0, max: 20_000 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('jump' as const), by: fc.integer({ min: -90_000, max: 90_000 }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('make' as const),
        which,
        ahead: fc.integer({ min: -600, max: 1200 }),
        life: fc.integer({ min: 1, max: 90_000 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('lose' as const), which }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('find' as const), which }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('outage' as const), which }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('job' as const), needs: fc.uniqueArray(which, { maxLength: 3 }) }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('submit' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('end' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const) }) },
  );

  it('no alarm comes twice, no job stays held, nothing is submitted with a dead credential, and the clock wakes in time', () => {
    fc.assert(
      fc.property(
        fc.array(event, { minLength: 10, maxLength: 80 }),
        fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
        (events, renews) => {
          const world = new World();
          world.now = 1_000_000;
          let versions = 0;
          let procs = 0;
          const make = (at: number, ahead: number, life: number) => {
            const name = CREDENTIALS[at] ?? '';
            const start = world.now + ahead;
            world.set(
              proxy({ name, start, end: start + life, version: `v${++versions}`, renews: renews[at] ?? false }),
            );
          };
          CREDENTIALS.forEach((_, at) => make(at, 0, 40_000));
          const find = (at: number) => world.credentials.get(CREDENTIALS[at] ?? '') ?? proxy();
          const reallyAlive = (name: string) => {
            const { start = 0, end = 0, problem } = world.credentials.get(name) ?? proxy({ end: 0 });
            return problem === undefined && world.now < end && world.now >= start - 300;
          };
          const settle = () => {
            const before = world.jobs.filter((one) => one.where === 'there').length;
            for (const action of world.look()) {
              if (action.do === 'renew' && action.credential !== 'c') {
                make(CREDENTIALS.indexOf(action.credential), 0, 40_000);
                world.renewal(action.credential);
              } else if (action.do === 'renew') world.renewal('c', 'It is down.');
            }
            world.look();
            expect(world.look()).toEqual([]);
            expect(world.jobs.filter((one) => one.where === 'there')).toHaveLength(before);
            for (const one of world.jobs) {
              const gate = mayUse(one.needs, world.credentials, world.now, world.config);
              expect(one.where === 'held' && gate.is === 'good').toBe(false);
              expect(one.where === 'waiting' && (gate.is === 'ended' || gate.is === 'early')).toBe(false);
            }
            const asleep = world.nextLook === undefined ? world.now + 100_000 : world.nextLook - 1;
            const kept = world.memories;
            expect(asleep <= world.now ? [] : world.look(asleep)).toEqual([]);
            world.memories = kept;
            world.look();
          };
          for (const one of events) {
            switch (one.do) {
              case 'wait':
              case 'jump':
                world.now += one.by;
                break;
              case 'make':
                make(one.which, one.ahead, one.life);
                break;
              case 'lose':
                world.set({ ...find(one.which), problem: 'it is gone.' });
                break;
              case 'find': {
                const { problem: _problem, ...rest } = find(one.which);
                world.set(rest);
                break;
              }
              case 'outage':
                world.renewal(CREDENTIALS[one.which] ?? '', 'It is down.');
                break;
              case 'job':
                world.jobs.push(
                  job(
                    procs++,
                    'waiting',
                    one.needs.map((at) => CREDENTIALS[at] ?? ''),
                  ),
                );
                break;
              case 'submit': {
                const at = world.jobs.findIndex(
                  (each) =>
                    each.where === 'waiting' &&
                    mayUse(each.needs, world.credentials, world.now, world.config).is === 'good',
                );
                const found = world.jobs[at];
                assert.ok(found?.needs.every(reallyAlive) ?? true);
                if (found !== undefined) world.jobs[at] = { ...found, where: 'there' };
                for (const name of found?.needs ?? [])
                  world.copies.push({ credential: name, site: 'alpha', version: 'old' });
                break;
              }
              case 'end':
                world.jobs.shift();
                break;
              case 'crash':
                world.crash();
                break;
            }
            settle();
          }
          expect(new Set(world.alarms).size).toBe(world.alarms.length);
        },
      ),
      { numRuns: 300 },
    );
  });
});
