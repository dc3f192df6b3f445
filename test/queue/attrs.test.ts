import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { Attrs } from '../../src/job/attrs.ts';
import { decodeJob, encodeJson } from '../../src/queue/record.ts';

const name = fc.constantFrom(
  'Cmd',
  'cmd',
  'CMD',
  'Args',
  'ARGS',
  'args',
  'Out',
  '__proto__',
  'constructor',
  'toString',
);
const layer = fc.dictionary(name, fc.option(fc.constantFrom('1', '2', '3')), { noNullPrototype: true }).map((own) => {
  // One spelling of a name per layer.
  const seen = new Set<string>();
  return Object.fromEntries(
    Object.entries(own).filter(([n]) => !seen.has(n.toLowerCase()) && seen.add(n.toLowerCase())),
  );
});

it('merges layers without regard to case, and says the same by each of its ways', () => {
  fc.assert(
    fc.property(fc.array(layer, { minLength: 1, maxLength: 3 }), name, (layers, asked) => {
      const attrs = layers.reduce<Attrs | undefined>((below, own) => new Attrs(own, below), undefined);
      const plain = new Map<string, string>();
      for (const own of layers) {
        for (const [n, text] of Object.entries(own)) {
          if (text === null) plain.delete(n.toLowerCase());
          else plain.set(n.toLowerCase(), text);
        }
      }
      expect(attrs?.get(asked)).toBe(plain.get(asked.toLowerCase()));
      const record = Object.entries(attrs?.toRecord() ?? {}).map(([n, text]) => `${n.toLowerCase()}=${text}`);
      expect(record.sort()).toEqual([...plain].map(([n, text]) => `${n}=${text}`).sort());
    }),
  );
});

it('says the same of a stored job, whatever is asked first', () => {
  const text = fc.constantFrom('1', '"args":', '"\\"Out\\":"', 'İ');
  const own = layer.chain((some) =>
    fc.tuple(...Object.keys(some).map((n) => fc.tuple(fc.constant(n), fc.option(text)))),
  );
  const asked = fc.array(fc.oneof(name, fc.constantFrom('ClusterId', 'procid', 'GryphusSite')), { maxLength: 6 });
  fc.assert(
    fc.property(layer, own, asked, (below, entries, names) => {
      const stored = { state: 'idle', manager: '0', site: '0', priority: 0, attempt: 3, since: 9 } as const;
      const json = encodeJson(Object.fromEntries(entries));
      const read = () =>
        decodeJob({ cluster: 7, proc: 8 }, { ...stored, own: json }, new Attrs(below), new Map([['0', 's']])).attrs;
      const parsed = read();
      void parsed.own;
      const lazy = read();
      for (const n of names) expect(lazy.get(n)).toBe(parsed.get(n));
      expect(lazy.toRecord()).toEqual(parsed.toRecord());
    }),
  );
});
