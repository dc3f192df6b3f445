import { expect, it } from 'vitest';
import { type Expr, parseExpr, printExpr } from '../../src/classad/api.ts';
import { Collector } from '../../src/pool/central-manager/collector.ts';
import { Significance } from '../../src/pool/central-manager/significance.ts';
import { adFrom } from '../../src/pool/wire/ads.ts';

it.each([
  '0',
  '12',
  '1700000000',
  '0.00',
  '0.52',
  '3.5',
  '010',
  '007',
  '-3',
  '-0.5',
  '1e3',
  '123456789012345678901',
  '00.5',
])('a machine says %s as it is parsed', (text) => {
  const said = adFrom({ A: text }).find('a');
  const parsed = parseOrError(text);
  expect(said && printExpr(said, 'old')).toBe(printExpr(parsed, 'old'));
  expect(said).toEqual(parsed);
});

function parseOrError(text: string): Expr {
  try {
    return parseExpr(text, 'old');
  } catch {
    return parseExpr('error', 'old');
  }
}

it('a change of what jobs ask for is one that matters, and its load is none', () => {
  const significance = new Significance();
  const wants = 'TARGET.Colour == "red"';
  significance.learn('job', { Requirements: wants }, new Map([['requirements', wants]]));
  const collector = new Collector({ now: () => 0, clock: () => 0 }, significance);
  const size = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };
  const about = { instance: 'w', token: 't', site: 's', boot: 'b', size };
  const worker = collector.make(about, { Colour: '"blue"', Shade: '"dark"', LoadAvg: '0.1' }, 'w', 'h');
  collector.add(worker);
  expect(collector.update(worker, { LoadAvg: '0.2' })).toBe(false);
  expect(worker.texts['LoadAvg']).toBe('0.2');
  expect(collector.update(worker, { Colour: '"red"', LoadAvg: '0.3' })).toBe(true);
  expect(collector.update(worker, { Colour: '"red"', LoadAvg: '0.4' })).toBe(false);
  const [before] = collector.offers();
  collector.update(worker, { Shade: '"light"' });
  expect(collector.offers()[0]?.shape).toBe(before?.shape);
  // A job that asks for more makes other attributes matter.
  const more = 'TARGET.Shade == "dark"';
  significance.learn('job', { Requirements: more }, new Map([['requirements', more]]));
  expect(collector.offers()[0]?.shape).not.toBe(before?.shape);
  expect(collector.update(worker, { Shade: '"dark"' })).toBe(true);
});
