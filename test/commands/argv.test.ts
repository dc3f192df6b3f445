import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { condorHabits } from '../../src/commands/argv.ts';
import { assignments } from '../../src/commands/edit.ts';
import { ORDER_FLAGS } from '../../src/commands/dag/order.ts';
import { allCommands } from '../../src/commands/registry.ts';
import { mustName, selections, targets } from '../../src/commands/select.ts';

const COMMANDS = await allCommands();

const id = (cluster: number, proc: number) => ({ cluster, proc });

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
    ['submit -a hold=true -', 'submit --append hold=true -'],
    ['submit -dry-run - a.sub', 'submit --dry-run a.sub'],
    ['submit -dry-run:full out.ads a.sub', 'submit --dump out.ads a.sub'],
    ['submit -dr:full - a.sub', 'submit -dr:full - a.sub'],
    ['submit -dump out.ads a.sub -FACTORY', 'submit --dump out.ads a.sub --factory'],
    ['submit -maxjobs -1 -m 3', 'submit --maxjobs -1 -m 3'],
    ['submit -queue 3 -v a.sub', 'submit --queue=3 --verbose a.sub'],
    ['submit -tab:x a.csv', 'submit -tab:x a.csv'],
    ['submit -table a.csv a.sub', 'submit --queue=from,table,a.csv a.sub'],
    ['submit -g -unused -dis', 'submit --factory --unused --disable'],
    ['submit -unused -u -unu --unused', 'submit --unused --unused'],
    ['submit -batch-n a -batch-i 5 -fi a.sub', 'submit --batch-name a --batch-id 5 --file a.sub'],
    ['submit -bogus a.sub', 'submit -bogus a.sub'],
    ['dag submit -maxj 5 -f a.dag', 'dag submit --maxjobs 5 --force a.dag'],
    ['dag submit -MaxIdle 5 -v -UseDagDir a.dag', 'dag submit --maxidle 5 --verbose --usedagdir a.dag'],
    ['dag submit -insert_e A=1 -no_s -p -3 a.dag', 'dag submit --insert_env A=1 --no_submit --priority -3 a.dag'],
    ['dag submit -append a=b -wait a.dag', 'dag submit --append a=b --wait a.dag'],
    ['submit --dry-run -', 'submit --dry-run -'],
    ['submit -batch-name -odd- a.sub', 'submit --batch-name -odd- a.sub'],
    ['rm -all', 'rm --all'],
    ['hold 1 -reason why', 'hold 1 --reason why'],
    ['wait -wait 60 -num 2 x.log', 'wait --timeout 60 --num 2 x.log'],
    ['edit 1.0 JobPrio -5', 'edit 1.0 JobPrio=-5'],
    ['tail -f 1.0', 'tail -f 1.0'],
    ['site add a ssh://b -batch slurm', 'site add a ssh://b --batch slurm'],
    ['q -- -nobatch', 'q -- -nobatch'],
    ['map -0 true', 'map --null -- true'],
    ['map -keep-order true ::: -summary -0', 'map --keep-order -- true ::: -summary -0'],
    ['q -nosuch', 'q -nosuch'],
    ['rm -cluster 5', 'rm --cluster 5'],
    ['history -backwards -completedsince 5 -forc', 'history --completedsince=5 -forc'],
    ['history -ctrue -cJobStatus==4', 'history -ctrue -cJobStatus==4'],
  ])('%s', (typed, meant) => {
    const words = condorHabits(typed.split(' '), COMMANDS);
    expect(words.map((word) => word.replaceAll(' ', ','))).toEqual(meant.split(' '));
  });

  it('a queue on the command line is all words up to the next option, as there', () => {
    expect(condorHabits(['submit', 'a.sub', '-queue', 'x', 'in', 'a b', '-', '-terse'], COMMANDS)).toEqual([
      'submit',
      'a.sub',
      '--queue=x in a b -',
      '--terse',
    ]);
  });

  it.each([
    ['submit -maxjobs', /-maxjobs requires another argument/],
    ['submit -s a.sub', /-spool: submit does not copy files/],
    ['submit -name host a.sub', /-name: Gryphus has one queue/],
    ['submit -r host a.sub', /-remote: Gryphus/],
    ['submit --remote host a.sub', /--remote: Gryphus/],
    ['submit -pool host a.sub', /-pool: Gryphus/],
    ['submit -addr <127.0.0.1:9618> a.sub', /-address: Gryphus/],
    ['submit -i a.sub', /-interactive: /],
    ['submit -capabilities:2', /-capabilities: /],
    ['submit -debug:D_FULLDEBUG a.sub', /-debug: /],
    ['submit -password x a.sub', /-password: /],
    ['submit -digest x a.sub', /-digest: /],
    ['submit -dry-run:hash out a.sub', /-dry-run:hash: /],
    ['submit -dry-run -terse a.sub', /-dry-run requires another argument/],
    ['dag submit -m 5 a.dag', /-m may be -MaxHold or -MaxIdle or -MaxJobs/],
    ['dag submit -remote host a.dag', /-Remote: /],
    ['dag submit -r host a.dag', /-Remote: /],
    ['dag submit -schedd-daemon-ad-file f a.dag', /-schedd-daemon-ad-file: /],
    ['dag submit -valgrind a.dag', /-Valgrind: /],
    ['dag submit -dumprescue a.dag', /-DumpRescue: /],
    ['dag submit -DAGMan /bin/true a.dag', /-DAGMan: /],
  ])('%s is refused with a sentence', (typed, error) => {
    const refused = expect.objectContaining({ code: 'usage', message: expect.stringMatching(error) });
    expect(() => condorHabits(typed.split(' '), COMMANDS)).toThrow(refused);
  });
});

describe('condor_submit_dag', () => {
  /** Its options, as its sources declare them, with a value for those that take one. */
  const OPTIONS =
    `-AllowVersionMismatch -AlwaysRunPost -Append=x=1 -AutoRescue=1 -batch-name=b -Config=c -DAGMan=/bin/true -Debug=3
    -do_recurse -dont_suppress_notification -DontAlwaysRunPost -DoRecovery -DoRescueFrom=1 -DumpRescue -Force -import_env
    -include_env=A -insert_env=A=1 -insert_sub_file=f -load_save=s -MaxHold=1 -MaxIdle=1 -MaxJobs=1 -MaxPost=1 -MaxPre=1
    -no_recurse -no_submit -Notification=never -outfile_dir=d -Priority=1 -Remote=h -schedd-address-file=f
    -schedd-daemon-ad-file=f -SubmitMethod=1 -suppress_notification -update_submit -UseDagDir -Valgrind -Verbose`.split(
      /\s+/,
    );
  const flags = Object.keys(ORDER_FLAGS).concat('no_submit');

  it.each(OPTIONS)('%s is taken or refused with a sentence', (typed) => {
    const [option = '', value] = typed.split(/=(.*)/s);
    let words: readonly string[];
    try {
      words = condorHabits(['dag', 'submit', option, ...(value === undefined ? [] : [value]), 'x.dag'], COMMANDS);
    } catch (refused) {
      expect(refused).toMatchObject({ code: 'usage', suggestions: [expect.stringMatching(/\.$/)] });
      return;
    }
    expect(flags).toContain(words[2]?.replace(/^--/, ''));
    expect(words.slice(3)).toEqual([...(value === undefined ? [] : [value]), 'x.dag']);
  });
});

describe('jobs as HTCondor users type them', () => {
  it('each by itself, or together', () => {
    const words = ['12', '12.3', '12.4', 'jane'];
    expect(targets({ words })).toEqual([
      { clusters: [12] },
      { ids: [id(12, 3)] },
      { ids: [id(12, 4)] },
      { owner: 'jane' },
    ]);
    expect(mustName({ words })).toEqual([{ clusters: [12] }, { ids: [id(12, 3), id(12, 4)] }, { owner: 'jane' }]);
    expect(selections({ words })).toEqual([{ ids: [id(12, 3), id(12, 4)], clusters: [12] }, { owner: 'jane' }]);
    expect(selections({ words: [] })).toEqual([{}]);
    expect(targets({ words: [], all: true })).toEqual([{ all: true }]);
  });

  it('a constraint narrows whatever is named, in every form of it', () => {
    const word = fc.oneof(
      fc.nat(99).map(String),
      fc.tuple(fc.nat(99), fc.nat(9)).map((two) => two.join('.')),
      fc.constantFrom('jane', 'joe'),
    );
    const named = fc.record({ words: fc.array(word), all: fc.boolean() }, { requiredKeys: ['words'] });
    fc.assert(
      fc.property(named, fc.string({ minLength: 1 }), ({ words, all }, constraint) => {
        const some = { words, constraint, ...(words.length > 0 ? {} : { all }) };
        for (const found of [targets(some), mustName(some), selections(some)]) {
          expect(found.length).toBeGreaterThan(0);
          expect(found.map((one) => one.constraint)).toEqual(found.map(() => constraint));
          const ids = found.flatMap((one) => one.ids ?? []);
          expect(ids).toHaveLength(words.filter((one) => one.includes('.')).length);
          // No named job must not mean all jobs.
          if (words.length > 0) for (const one of found) expect(one.ids ?? one.clusters ?? one.owner).toBeDefined();
        }
      }),
    );
  });

  it.each([['-9'], ['12.x'], ['12.3-7'], ['12-15']])('refuses %s', (word) => {
    expect(() => targets({ words: [word] })).toThrow(expect.objectContaining({ code: 'usage' }));
  });

  it('refuses nothing, and some with all', () => {
    expect(() => mustName({ words: [] })).toThrow('You did not specify any jobs.');
    expect(() => mustName({ words: ['12'], all: true })).toThrow('--all and 12 contradict each other.');
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
