import { describe, expect, it } from 'vitest';
import { condorHabits } from '../../src/commands/argv.ts';
import { assignments } from '../../src/commands/edit.ts';
import { COMMANDS } from '../../src/commands/registry.ts';
import { selections, targets } from '../../src/commands/select.ts';

describe("HTCondor's habits", () => {
  it.each([
    ['help', '--help'],
    ['help site add', 'site add --help'],
    ['q -nobatch', 'q --nobatch'],
    ['q -nob 12 13.1', 'q --nobatch 12 13.1'],
    ['q -const JobStatus==5 -tot', 'q --constraint JobStatus==5 --totals'],
    ['q -c JobStatus==5 -l', 'q -c JobStatus==5 -l'],
    ['q -af ClusterId ProcId', 'q --af ClusterId --af ProcId'],
    ['q 12 -af:jh JobStatus Owner -limit 3', 'q 12 --af-format=jh --af JobStatus --af Owner --limit 3'],
    ['q -autoformat:lrng A', 'q --af-format=lrng --af A'],
    ['q --json --limit 3', 'q --json --limit 3'],
    ['q -help', 'q --help'],
    ['-help', '--help'],
    ['history -match 2 -json', 'history --limit 2 --json'],
    ['submit -append request_memory=1G -terse a.sub x=1', 'submit --append request_memory=1G --terse a.sub x=1'],
    ['submit -a hold=true -', 'submit -a hold=true -'],
    ['submit -dry-run - a.sub', 'submit --dry-run a.sub'],
    ['submit --dry-run -', 'submit --dry-run -'],
    ['submit -batch-name -odd- a.sub', 'submit --batch-name -odd- a.sub'],
    ['rm -all', 'rm --all'],
    ['hold 1 -reason why', 'hold 1 --reason why'],
    ['wait -wait 60 -num 2 x.log', 'wait --timeout 60 --num 2 x.log'],
    ['edit 1.0 JobPrio -5', 'edit 1.0 JobPrio=-5'],
    ['tail -f 1.0', 'tail -f 1.0'],
    ['site add a ssh://b -batch slurm', 'site add a ssh://b --batch slurm'],
    ['q -- -nobatch', 'q -- -nobatch'],
    ['map -0 true', 'map --null true'],
    ['map -keep-order true ::: -summary -0', 'map --keep-order true ::: -summary -0'],
    ['q -nosuch', 'q -nosuch'],
  ])('%s', (typed, meant) => expect(condorHabits(typed.split(' '), COMMANDS)).toEqual(meant.split(' ')));
});

describe('jobs as HTCondor users type them', () => {
  it('each by itself, or together', () => {
    const words = ['12', '12.3', 'jane', '1.x'];
    expect(targets({ words, all: true })).toEqual([
      { clusters: [12] },
      { ids: [{ cluster: 12, proc: 3 }] },
      { owner: 'jane' },
      { owner: '1.x' },
      { all: true },
    ]);
    expect(selections({ words, constraint: 'true' })).toEqual([
      { ids: [{ cluster: 12, proc: 3 }], clusters: [12], constraint: 'true' },
      { owner: 'jane', constraint: 'true' },
      { owner: '1.x', constraint: 'true' },
    ]);
    expect(selections({ words: [] })).toEqual([{}]);
  });
});

describe('edit', () => {
  it('takes pairs and assignments', () => {
    expect(assignments(['JobPrio', '5', 'A="x = y"', 'My.B=1==2', 'C', 'D =?= 1'])).toEqual({
      JobPrio: '5',
      A: '"x = y"',
      'My.B': '1==2',
      C: 'D =?= 1',
    });
  });
  it.each([[['JobPrio']], [['5', 'x']], [['A=']]])('refuses %j', (words) => {
    expect(() => assignments(words)).toThrow(expect.objectContaining({ code: 'usage' }));
  });
});
