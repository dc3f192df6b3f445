import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Attrs, type AttrTexts } from '../../src/job/attrs.ts';
import type { Transitioned } from '../../src/job/events.ts';
import type { LifeEvent, State } from '../../src/job/life.ts';
import { next } from '../../src/job/life.ts';
import { parseUserLog } from '../../src/user-log/text.ts';
import { logEvents } from '../../src/job/log-events.ts';

const ID = { cluster: 51, proc: 0 };
const recorded = (name: string) =>
  parseUserLog(readFileSync(new URL(`../fixtures/user-log/${name}.log`, import.meta.url), 'utf8')).events;

/** The log events of the steps of one job's life, one second apart from 1000 on. */
function said(ad: AttrTexts, steps: readonly (readonly [LifeEvent, AttrTexts?, Readonly<Record<string, string>>?])[]) {
  const attrs: Record<string, string | null> = { ...ad };
  let state: State = 'idle';
  return steps.flatMap(([event, set = {}, info], i) => {
    const from = state;
    state = next(from, event) ?? from;
    Object.assign(attrs, set);
    const step = {
      type: 'transition',
      at: (1000 + i) * 1000,
      job: '51.0',
      event,
      from,
      to: state,
      attempt: 1,
      set,
      info,
    };
    return logEvents(ID, step as unknown as Transitioned, new Attrs(attrs));
  });
}

const VANILLA = { JobUniverse: '5', ImageSize: '45', GryphusSite: '"here"', RemoteHost: '"h"' };
const LIFE = [
  ['take'],
  ['prepared', { TransferInStarted: '1000', TransferInFinished: '1001' }],
  ['committed'],
  ['started'],
  ['ended', { ResidentSetSize: '5872', MemoryUsage: '6', ExitCode: '0' }],
  ['fetched', { TransferOutStarted: '1005', TransferOutFinished: '1005' }],
  ['complete'],
] as const;

describe('a job whose files travel', () => {
  it('says so at both ends, and what memory it took, in the recorded order and words', () => {
    const events = said(VANILLA, LIFE);
    const real = recorded('ok-transfer').filter(({ cluster }) => cluster === 50);
    expect(events.map(({ type }) => type)).toEqual(real.map(({ type }) => type));
    const phases = (of: readonly object[]) => of.flatMap((event) => ('phase' in event ? [event.phase] : []));
    expect(phases(events)).toEqual(phases(real));
    expect(events[0]).toMatchObject({ at: 1_000_000, host: '<here>' });
    expect(events[1]).toMatchObject({ at: 1_001_000 });
    expect(events[3]).toMatchObject({ sizeKb: 5872, memoryMb: 6, residentKb: 5872 });
  });

  it('says nothing of it in the other universes, as recorded', () => {
    for (const [universe, name] of [['9', 'grid'] as const, ['12', 'local'] as const]) {
      const types = new Set(said({ ...VANILLA, JobUniverse: universe }, LIFE).map(({ type }) => type));
      expect([types.has('image-size'), types.has('file-transfer')]).toEqual([false, false]);
      expect(recorded(name).some(({ type }) => type === 'image-size' || type === 'file-transfer')).toBe(false);
    }
  });
});

it('a job that runs where its files are has no transfers, and unmeasured memory is not reported', () => {
  const life = LIFE.map(([event, set]) => [event, event === 'ended' ? { ExitCode: '0' } : {}, set] as const);
  expect(
    said(
      VANILLA,
      life.map(([event, set]) => [event, set]),
    ).map(({ type }) => type),
  ).toEqual(['execute', 'terminated']);
});

describe('a job of the pool', () => {
  const START = [['take'], ['prepared'], ['committed'], ['started']] as const;
  const END = [['ended', { ExitCode: '0' }], ['fetched'], ['complete']] as const;

  it('that is evicted says so as recorded, and starts again', () => {
    const reason = 'Job vacated by schedd';
    const again = [
      ['ended', { ResidentSetSize: '1364' }],
      ['fetched'],
      ['again', {}, { by: 'eviction', reason }],
    ] as const;
    const events = said(VANILLA, [...START, ...again, ['forgotten'], ...START, ...END]);
    const real = recorded('evicted').filter(({ type }) => type !== 'submit');
    expect(events.map(({ type }) => type)).toEqual(real.map(({ type }) => type));
    const [evicted, ours] = [real, events].map((all) => all.find(({ type }) => type === 'evicted'));
    if (evicted?.type !== 'evicted') throw new Error('nothing was evicted');
    expect(ours).toMatchObject({ code: evicted.code, subcode: evicted.subcode, reason: evicted.reason });
    expect(ours).toHaveProperty('resources');
  });

  it('that is suspended and runs on says so as recorded', () => {
    const events = said(VANILLA, [...START, ['suspended'], ['started'], ...END]);
    const real = recorded('suspended').filter(({ type }) => type !== 'submit' && type !== 'image-size');
    expect(events.map(({ type }) => type)).toEqual(real.map(({ type }) => type));
    expect(events.find(({ type }) => type === 'suspended')).toMatchObject({ processes: 1 });
  });
});
