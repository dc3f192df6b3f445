import { describe, expect, it } from 'vitest';
import { asksForOther, changesOnEvict, OUT_OF_MEMORY } from '../../src/gridmanager/on-evict.ts';
import { Attrs, type AttrTexts } from '../../src/job/attrs.ts';
import { jobs } from '../submit/support.ts';

/** What each of `times` ends for too much memory makes of a job's request; `held`: it is not restarted. */
function memory(lines: string, times: number, attribute = 'RequestMemory'): (string | undefined)[] {
  const [ad = {}] = jobs(`${lines}\nqueue`);
  const cluster = new Attrs(ad);
  let own: AttrTexts = {};
  return Array.from({ length: times }, () => {
    const changes = changesOnEvict(new Attrs(own, cluster), OUT_OF_MEMORY);
    own = { ...own, ...changes };
    return asksForOther(changes) ? new Attrs(own, cluster).get(attribute) : 'held';
  });
}

describe('a job that was ended for its memory', () => {
  it.each<[lines: string, asks: string[]]>([
    ['request_memory = 100\nretry_request_memory = 400', ['400', 'held']],
    ['request_memory = 100, 1G, 3G', ['1024', '3072', 'held']],
    ['request_memory = 100\nretry_request_memory = 1G, 2G', ['1024', '2048', 'held']],
    ['request_memory = 1G\nretry_request_memory = RequestMemory * 2', ['2048', '4096', '8192']],
    [
      'request_memory = 1G\nretry_request_memory_increase = RequestMemory*4\nretry_request_memory_max = 10G',
      ['4096', '10240', 'held'],
    ],
    [
      'request_memory = 1G\nretry_request_memory_increase = 500\nretry_request_memory_max = 2G',
      ['1524', '2024', '2048', 'held'],
    ],
    ['request_memory = 1G\nretry_request_memory_max = 2G', ['2048', 'held']],
    ['request_memory = 1G', ['held']],
    ['universe = grid\ngrid_resource = batch slurm\nrequest_memory = 1G\nretry_request_memory = 2G', ['2048', 'held']],
  ])('%j asks for %j', (lines, asks) => expect(memory(lines, asks.length)).toEqual(asks));

  it('is not what another eviction is', () => {
    const [ad = {}] = jobs('request_memory = 100\nretry_request_memory = 400\nqueue');
    expect(changesOnEvict(new Attrs(ad), {})).toEqual({});
    expect(changesOnEvict(new Attrs(ad), { code: 34, subCode: 104 })).toEqual({});
    expect(changesOnEvict(new Attrs(ad), { code: 21, subCode: 102 })).toEqual({ RequestMemory: '400' });
  });
});

describe("a user's own transforms", () => {
  const lines = (body: string, more = '') =>
    `on_evict_checks = A\ntransform_body_A @=end\n${body}\n@end\n+Left = 1\n+Kept = "k"\n${more}\nqueue`;
  const changes = (body: string, more?: string) => changesOnEvict(new Attrs(jobs(lines(body, more))[0] ?? {}), {});

  it.each<[body: string, changes: AttrTexts]>([
    ['SET New Left + 1', { New: 'Left + 1' }],
    ['EVALSET New Left + 1', { New: '2' }],
    ['EVALSET New NoSuch + 1', {}],
    ['DEFAULT Left 5\nDEFAULT New 5', { New: '5' }],
    ['COPY Kept Copied', { Copied: '"k"' }],
    ['RENAME Kept Moved', { Moved: '"k"', Kept: null }],
    ['DELETE Left\nDELETE NoSuch', { Left: null }],
    ['DELETE Left\nSET    Left true\nRENAME Left Leave', { Left: null, Leave: 'true' }],
    ['REQUIREMENTS Left == 2\nSET New 1', {}],
    ['REQUIREMENTS Left == 1\nSET New 1', { New: '1' }],
    ['SET Left 1', {}],
    ['NONSENSE Left', {}],
  ])('%j', (body, expected) => expect(changes(body)).toEqual(expected));

  it('come after one another, and one with an unknown name is skipped', () => {
    const more = 'transform_body_B = EVALSET Left Left + 1';
    const text = lines('EVALSET Left Left + 10', more).replace('on_evict_checks = A', 'on_evict_checks = A, C, B');
    expect(changesOnEvict(new Attrs(jobs(text)[0] ?? {}), {})).toEqual({ Left: '12' });
  });
});
