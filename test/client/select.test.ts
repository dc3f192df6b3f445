import fc from 'fast-check';
import { expect, it } from 'vitest';
import { picker } from '../../src/client/select.ts';
import { Attrs, type AttrTexts } from '../../src/job/attrs.ts';

const NAMES = ['Cmd', 'cmd', 'CMD', 'JobPrio', 'jobprio', 'Owner', 'Other', 'toString'] as const;

it("selected attributes are those of each job, whether its own or its cluster's, in any case", () => {
  // Each layer has each name once, in any case.
  const layer = fc
    .uniqueArray(fc.tuple(fc.constantFrom(...NAMES), fc.option(fc.constantFrom('1', '"a"'))), {
      selector: ([name]) => name.toLowerCase(),
    })
    .map((pairs): AttrTexts => Object.fromEntries(pairs));
  fc.assert(
    fc.property(layer, fc.array(layer), fc.uniqueArray(fc.constantFrom(...NAMES)), (cluster, procs, asked) => {
      const parent = new Attrs(cluster);
      const pick = picker(asked);
      for (const attrs of [new Attrs(cluster), ...procs.map((own) => new Attrs(own, parent))]) {
        const each = asked.flatMap((name) => {
          const text = attrs.get(name);
          return text === undefined ? [] : [[name, text]];
        });
        expect(pick(attrs)).toEqual(Object.fromEntries(each));
      }
    }),
  );
});

it('selected attributes are those of each job where no two jobs are alike', () => {
  const parent = new Attrs({ Cmd: '"/bin/true"', Args: '"all"', JobPrio: '0' });
  const pick = picker(['Args', 'JobPrio', 'Cmd']);
  for (let proc = 0; proc < 500; proc++) {
    const own = proc > 300 ? { args: null } : { ARGS: `"${proc}"` };
    const args = proc > 300 ? {} : { Args: `"${proc}"` };
    expect(pick(new Attrs(own, parent))).toEqual({ ...args, JobPrio: '0', Cmd: '"/bin/true"' });
  }
});
