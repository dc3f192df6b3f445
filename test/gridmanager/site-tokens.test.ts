import { mkdtempSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SiteTokens } from '../../src/gridmanager/site-tokens.ts';
import { Tokens } from '../../src/pool/wire/tokens.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gry-tokens-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const LONG_AGO = new Date('2001-01-01');

it('knows of each site which tokens there are, also of one that comes or goes', () => {
  const tokens = new Tokens(dir);
  const sites = new SiteTokens(tokens, 0);
  expect([...sites.at('a')]).toEqual([]);
  const one = tokens.issue({ site: 'a', local: false });
  const here = tokens.issue({ site: 'a', local: true });
  expect([[...sites.at('a')], [...sites.at('')], [...sites.at('b')]]).toEqual([[one.id], [here.id], []]);
  const other = tokens.issue({ site: 'b', local: false });
  tokens.revoke(one.id);
  expect([[...sites.at('a')], [...sites.at('b')]]).toEqual([[], [other.id]]);
});

it('reads the directory no more when it has not changed for a while, and again when it has', () => {
  const tokens = new Tokens(dir);
  tokens.issue({ site: 'a', local: false });
  const read = vi.spyOn(tokens, 'all');
  const sites = new SiteTokens(tokens, 0);
  for (let looks = 0; looks < 20; looks++) sites.at('a');
  const before = read.mock.calls.length;
  expect(before).toBeLessThan(6);
  tokens.issue({ site: 'a', local: false });
  expect(sites.at('a').size).toBe(2);
});

it('sees what came in the moment of the look before', () => {
  const tokens = new Tokens(dir);
  tokens.issue({ site: 'a', local: false });
  utimesSync(tokens.dir, LONG_AGO, LONG_AGO);
  const sites = new SiteTokens(tokens, 0);
  expect(sites.at('a').size).toBe(1);
  tokens.issue({ site: 'a', local: false });
  // As a file system whose clock ticks slowly shows it.
  utimesSync(tokens.dir, LONG_AGO, LONG_AGO);
  expect(statSync(tokens.dir).mtime).toEqual(LONG_AGO);
  expect(sites.at('a').size).toBe(2);
});

it('looks once for all sites', () => {
  const tokens = new Tokens(dir);
  const read = vi.spyOn(tokens, 'all');
  const sites = new SiteTokens(tokens, 3_600_000);
  for (let site = 0; site < 200; site++) sites.at(`s${site}`);
  expect(read.mock.calls.length).toBe(1);
});
