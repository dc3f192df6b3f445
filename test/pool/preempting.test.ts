import { describe, expect, it } from 'vitest';
import type { AttrTexts } from '../../src/job/attrs.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { AttemptRequest } from '../../src/pool/attempts.ts';
import { Desk } from '../../src/pool/desk.ts';
import { recover } from '../../src/pool/desk-journal.ts';
import type { FromDesk } from '../../src/pool/wire.ts';
import { until } from '../agent/agent.ts';
import { JUST_TRUE } from './just-true.ts';

const SIZE = { cpus: 1, memoryMb: 1000, diskKb: 1e6, gpus: 0 };

function request(i: number, ad: AttrTexts): AttemptRequest {
  return {
    key: `a.${i}.0.1`,
    owner: 'me',
    ad: { Requirements: 'true', Rank: '0', RequestCpus: '1', Owner: '"me"', ...ad },
    size: { cpus: 1, memoryMb: 100, diskKb: 0, gpus: 0 },
    prio: 0,
    lease: 2400,
    spec: JUST_TRUE,
  };
}

/** A desk with one worker of one core, which does what it is told. */
class Pool {
  now = 1_000_000;
  readonly told: FromDesk[] = [];
  readonly desk = new Desk(
    {
      journal: { add: () => undefined, whenSaved: (call) => call() },
      toWorker: (_, message) => this.told.push(message),
      toClient: () => undefined,
      now: () => this.now,
      clock: () => this.now,
      log: () => undefined,
    },
    recover([]),
  );

  constructor(ad: AttrTexts) {
    const about = { instance: 'w', token: 't', site: 's', boot: 'b', size: SIZE };
    this.desk.join(this.desk.collector.make(about, { Requirements: 'true', ...ad }, 'w', 'w'), []);
  }

  submit(i: number, ad: AttrTexts): void {
    const one = request(i, ad);
    this.desk.prepare('c', [one]);
    this.desk.commit([one.key], () => undefined);
  }

  of(t: FromDesk['t']): string[] {
    return this.told.flatMap((message) => (message.t === t && 'key' in message ? [message.key] : []));
  }

  async starts(i: number): Promise<void> {
    await until(`the start of ${i}`, () => this.of('start').includes(`a.${i}.0.1`) || undefined);
    this.desk.hear('w', { t: 'started', key: `a.${i}.0.1`, at: this.now / 1000 }, Buffer.alloc(0));
  }

  ends(i: number): void {
    const key: AttemptKey = `a.${i}.0.1`;
    const how = { kind: 'by-site', cause: 'preempted', words: '' } as const;
    this.desk.hear('w', { t: 'ended', key, ending: { how, startedAt: 1, endedAt: 2 } }, Buffer.alloc(0));
  }

  /** A round of the desk's clock, and all that follows from it. */
  async tick(seconds = 0): Promise<void> {
    this.now += seconds * 1000;
    this.desk.tick();
    for (let turn = 0; turn < 3; turn++) await new Promise((resume) => setImmediate(resume));
  }
}

describe('a machine that prefers a job that waits', () => {
  it('vacates what it runs, and keeps the place for that job', async () => {
    const pool = new Pool({ Rank: 'TARGET.Nice =?= true ? 0 : 10' });
    pool.submit(1, { Nice: 'true' });
    await pool.starts(1);
    // Both wait; the first of them is liked no more than what runs.
    pool.submit(2, { Nice: 'true' });
    pool.submit(3, {});
    await until('the eviction', () => pool.of('cancel').length > 0 || undefined);
    await pool.tick();
    expect(pool.of('cancel')).toEqual(['a.1.0.1']);
    pool.ends(1);
    await pool.starts(3);
    await pool.tick();
    expect([pool.of('start'), pool.of('cancel')]).toEqual([['a.1.0.1', 'a.3.0.1'], ['a.1.0.1']]);
  });

  it('leaves a job in peace for as long as it promised, or less where the job asks for less', async () => {
    for (const [asks, peace] of [
      [undefined, 600],
      ['100', 100],
      ['5000', 600],
    ] as const) {
      const pool = new Pool({ Rank: 'TARGET.Liked ?: 0', MaxJobRetirementTime: '600' });
      pool.submit(1, asks === undefined ? {} : { MaxJobRetirementTime: asks });
      await pool.starts(1);
      pool.submit(2, { Liked: '5' });
      await pool.tick(peace - 1);
      expect(pool.of('cancel')).toEqual([]);
      await pool.tick(1);
      expect(pool.of('cancel')).toEqual(['a.1.0.1']);
    }
  });

  it('vacates nothing for a job that it does not take, or likes as much', async () => {
    const pool = new Pool({ Rank: 'TARGET.Liked ?: 0' });
    pool.submit(1, { Liked: '5' });
    await pool.starts(1);
    pool.submit(2, { Liked: '5' });
    pool.submit(3, { Liked: '9', Requirements: 'false' });
    await pool.tick();
    expect(pool.of('cancel')).toEqual([]);
  });
});
