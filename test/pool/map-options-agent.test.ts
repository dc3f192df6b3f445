import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, TestAgent, until } from '../agent/agent.ts';

describe('GNU parallel’s options of a map', () => {
  let agent: TestAgent;
  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n');
    await agent.ok('up');
  }, 60_000);
  afterAll(() => agent.end());

  const lines = (name: string) => agent.read(name).trimEnd().split('\n');
  /** Seq, Exitval, Signal and Command of the log's lines, sorted. */
  const logged = (name: string) =>
    lines(name)
      .slice(1)
      .map((line) => line.split('\t'))
      .map((fields) => [fields[0], ...fields.slice(6)].join(' '))
      .sort();
  const usage = async (words: readonly string[], first: string) => {
    const { code, stderr } = await agent.run(['map', ...words, 'true', ':::', 'a']);
    expect(stderr.split('\n')[0]).toBe(`gryphus: ${first}`);
    expect(code).toBe(2);
  };

  it('--pipe gives each task a block of standard input, once, and leaves no file', async () => {
    const input = Array.from({ length: 1000 }, (_, i) => `${i}\n`).join('');
    agent.env['TMPDIR'] = join(agent.dir, 'tmp');
    mkdirSync(agent.env['TMPDIR'], { recursive: true });
    const cat = await agent.run(['map', '-k', '--pipe', '--block', '1k', 'cat'], { input });
    expect(cat).toMatchObject({ code: 0, stdout: input, stderr: '' });
    const counted = await agent.run(['map', '-k', '--pipe', '-N', '400', 'echo {#} $(wc -l)'], { input });
    expect(counted.stdout).toBe('1 400\n2 400\n3 200\n');
    const retried = await agent.run(
      ['map', '--pipe', '-N', '600', '--retries', '1', 'read x; [ -e $x ] || { touch $x; exit 3; }; echo $x'],
      { input },
    );
    expect([retried.code, retried.stdout.split('\n').sort().join(' ')]).toEqual([0, ' 0 600']);
    expect(readdirSync(agent.env['TMPDIR']).filter((name) => name.startsWith('gryphus-map-'))).toEqual([]);
    delete agent.env['TMPDIR'];
  });

  it('-a, --shuf; {%} is the number of a slot', async () => {
    agent.file('letters', 'a\nb\n');
    expect(await agent.ok('map', '-k', '-a', 'letters', 'echo {1}{2}', ':::', '1', '2')).toBe('a1\na2\nb1\nb2\n');
    const shuffled = await agent.ok(
      'map',
      '--shuf',
      '--dry-run',
      'echo {#}',
      ':::',
      ...'abcdefghijklmnopqrstuvwxyz'.split(''),
    );
    const numbers = shuffled
      .trim()
      .split('\n')
      .map((line) => Number.parseInt(line.slice(5), 10));
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 26 }, (_, i) => i + 1));
    expect(numbers).not.toEqual(numbers.toSorted((a, b) => a - b));
    expect(await agent.ok('map', 'echo {%}', ':::', 'a')).toBe('1\n');
  });

  it('--joblog has a line for each task that ended, and --resume runs the others', async () => {
    const command = 'echo {} >>ran; case {} in k) kill -9 $$;; esac; exit {}';
    const first = await agent.run(['map', '--joblog', 'log', command, ':::', '0', '3', 'k']);
    expect(first.code).toBe(2);
    expect(lines('log')[0]).toBe('Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand');
    for (const line of lines('log').slice(1)) expect(line).toMatch(/^\d\t\S+\t\d{10}\.\d{3}\t +\d+\.\d{3}\t0\t0\t/);
    const of = (input: string) => command.replaceAll('{}', input);
    const all = [`1 0 0 ${of('0')}`, `2 3 0 ${of('3')}`, `3 0 9 ${of('k')}`];
    expect(logged('log')).toEqual(all);
    // As if it had been killed while it wrote the third line.
    agent.file('cut', agent.read('log').trimEnd().split('\n').slice(0, 3).join('\n') + '\n3\tho');
    const seen = lines('cut')
      .slice(1, 3)
      .map((line) => line.split('\t')[0]);
    const before = lines('ran').length;
    const dry = await agent.ok(
      'map',
      '--joblog',
      'cut',
      '--resume',
      '--dry-run',
      'echo {#}.{}',
      ':::',
      '0',
      '3',
      'k',
      '0',
    );
    expect(dry.split('\n').slice(0, -1)).toEqual(
      ['1.0', '2.3', '3.k', '4.0'].filter((one) => !seen.includes(one[0])).map((one) => `echo ${one}`),
    );
    await agent.run(['map', '--joblog', 'cut', '--resume', command, ':::', '0', '3', 'k', '0']);
    expect(lines('ran').length - before).toBe(2);
    expect(logged('cut')).toEqual([...all, `4 0 0 ${of('0')}`]);
    await agent.run([
      'map',
      '--joblog',
      'cut',
      '--resume-failed',
      'echo {#}{} >>again',
      ':::',
      '0',
      '3',
      'k',
      '0',
      '1',
    ]);
    expect(lines('again').sort()).toEqual(['23', '3k', '51']);
    expect(lines('cut')).toHaveLength(8);
    const nothing = await agent.run(['map', '--joblog', 'cut', '--resume', 'true', ':::', '0', '3']);
    expect(nothing).toEqual({
      code: 0,
      stdout: '',
      stderr: 'gryphus: 2 tasks had ended before, so nothing was run.\n',
    });
    await agent.ok('map', '--joblog', '+cut', 'true', ':::', 'x');
    expect(lines('cut')).toHaveLength(9);
    await agent.ok('map', '--joblog', 'cut', 'true', ':::', 'x');
    expect(lines('cut')).toHaveLength(2);
  }, 60_000);

  it('--resume runs what Ctrl-C stopped', async () => {
    const command = 'echo {} >>begun; test {} = 1 || until test -e free; do sleep 0.05; done';
    const words = ['map', '--joblog', 'stopped', '--resume', command, ':::', '1', '2', '3', '4'];
    const map = agent.start(words);
    const ended = new Promise<number | null>((resolve) => map.once('close', resolve));
    const log = join(agent.work, 'stopped');
    await until('a first end', () => (existsSync(log) && lines('stopped').length === 2) || undefined);
    map.kill('SIGINT');
    expect(await ended).toBe(130);
    agent.file('free', '');
    await agent.ok(...words);
    expect(logged('stopped').map((line) => line[0])).toEqual(['1', '2', '3', '4']);
    expect(lines('begun').filter((one) => one === '1')).toEqual(['1']);
  }, 60_000);

  it('refuses --resume without a log, and a file that is none', async () => {
    await usage(['--resume'], '--resume needs --joblog FILE or --results DIR.');
    await usage(['--resume-failed'], '--resume-failed needs --joblog FILE.');
    for (const text of ['milk\n', 'milk', 'milk\neggs'])
      for (const words of [['notes', '--resume'], ['+notes']]) {
        agent.file('notes', text);
        const { code, stderr } = await agent.run(['map', '--joblog', ...words, 'true', ':::', 'a']);
        expect(stderr).toMatch(/^gryphus: Line 1 of "notes" is not one of a job log\.\n {2}→ /);
        expect(code).toBe(65);
        expect(agent.read('notes')).toBe(text);
      }
  }, 60_000);

  it('--results keeps the outputs of each task under its inputs', async () => {
    const long = 'é'.repeat(200);
    const inputs = ['a b', 'x/y\\z', '..', '', long, `${long}x`];
    const command = 'printf %s {1}; echo {2} >&2; exit {2}';
    const said = await agent.run(['map', '--results', 'out', command, ':::', ...inputs, ':::', '0', '7']);
    expect(said.code).toBe(inputs.length);
    const one = (name: string, code: string, file: string) => agent.read(`out/1/${name}/2/${code}/${file}`);
    for (const [i, name] of ['a b', 'x\\_y\\\\z', '\\..', '\\'].entries()) {
      expect(one(name, '7', 'stdout')).toBe(inputs[i]);
      expect(one(name, '7', 'stderr')).toBe('7\n');
      expect(one(name, '7', 'seq')).toBe(String(2 * i + 2));
    }
    expect(existsSync(join(agent.work, 'out/stdout'))).toBe(false);
    const dry = await agent.ok(
      'map',
      '--results',
      'out',
      '--resume',
      '--dry-run',
      command,
      ':::',
      'new',
      ...inputs,
      ':::',
      '0',
    );
    expect(dry).toBe(`${command.replaceAll('{1}', 'new').replaceAll('{2}', '0')}\n`);
    await usage(['--results', 'out.csv'], '--results writes a directory, and "out.csv" names a table.');
    const { stderr, code } = await agent.run(['map', '--results', 'log/x', 'true', ':::', 'a']);
    expect(stderr).toMatch(/^gryphus: Cannot write "log\/x\/1\/a": /);
    expect(code).toBe(73);
    expect(readFileSync(join(agent.work, 'log'), 'utf8')).not.toBe('');
  }, 60_000);

  it('--halt soon starts no more tasks and waits for those that run', async () => {
    const command = 'echo {} >>soon; test {} != 1 || exit 7; until test -e go; do sleep 0.05; done; echo {} >>ended';
    // Standard input stays open, as that of a pipe whose writer has not finished.
    const map = agent.start(['map', '--halt', 'soon,fail=1', '--retries', '0', command]);
    map.stdin?.write(`2\n1\n${Array.from({ length: 40 }, (_, i) => `${i + 3}\n`).join('')}`);
    let said = '';
    map.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text));
    const ended = new Promise<number | null>((resolve) => map.once('close', resolve));
    await until('the map to halt', () => said.includes('\n') || undefined);
    expect(said).toBe('gryphus: 1 task failed, so no more are started, and those that run are waited for.\n');
    agent.file('go', '');
    expect(await ended).toBe(7);
    // Those that had started before the map knew of the failure.
    expect(lines('soon').length).toBeLessThan(6);
    expect(lines('ended').sort()).toEqual(
      lines('soon')
        .filter((one) => one !== '1')
        .sort(),
    );
    // All cores are free again, and nothing is left.
    await agent.ok('map', 'true', ':::', '1', '2', '3');
  }, 60_000);

  it('--halt now stops those that run, and the exit status is GNU parallel’s', async () => {
    const wins = await agent.run([
      'map',
      '-j',
      '2',
      '--joblog',
      'race',
      '--halt',
      'now,success=1',
      'test {} = 2 || sleep 600',
      ':::',
      '1',
      '2',
      '3',
    ]);
    expect(wins.stderr).toBe('gryphus: 1 task succeeded, so the map is stopped.\n');
    expect(wins.code).toBe(0);
    expect(logged('race')).toEqual(['2 0 0 test 2 = 2 || sleep 600']);
    const halted = async (rule: string, ...codes: readonly string[]) => {
      const { code, stdout } = await agent.run([
        'map',
        '-k',
        '-j',
        '1',
        '--halt',
        rule,
        'echo {}; exit {}',
        ':::',
        ...codes,
      ]);
      return [code, stdout.trimEnd().split('\n').length];
    };
    expect(await halted('2', '0', '5', '0')).toEqual([5, 2]);
    expect(await halted('now,fail=2', '0', '5', '6', '0')).toEqual([2, 3]);
    expect(await halted('never', '5', '6', '0')).toEqual([2, 3]);
    expect(await halted('now,done=1', '0', '0')).toEqual([0, 1]);
    // At least three must have failed.
    expect(await halted('now,fail=10%', '1', '1', '0', '1', '0', '0')).toEqual([50, 4]);
    await usage(['--halt', 'later'], '--halt cannot be "later".');
    await usage(['--halt', 'now,fail=0'], '--halt cannot be "now,fail=0".');
    await usage(['--halt', 'now,fail=200%'], '--halt cannot be "now,fail=200%".');
  }, 60_000);

  it('--timeout ends tasks that take longer, which have failed', async () => {
    const words = ['--timeout', '0.5', '--joblog', 'late', 'sleep {}'];
    const { code, stderr } = await agent.run(['map', ...words, ':::', '600', '0']);
    expect(stderr).toBe('gryphus: 600: it ran for 0.5 s\n');
    expect(code).toBe(1);
    expect(logged('late')).toEqual(['1 -1 0 sleep 600', '2 0 0 sleep 0']);
    await usage(['--timeout', '200%'], '--timeout 200% is not supported: a share of the time that other tasks took.');
    await usage(['--timeout', 'soon'], '--timeout: "soon" is not a time from 0 to 24 days.');
  }, 60_000);

  it('--delay waits between one task and the next', async () => {
    // There is a free slot for each from the start.
    await agent.ok('map', 'true', ':::', '1', '2');
    const said = await agent.ok('map', '-k', '--delay', '1.5s', 'date +%s.%N #', ':::', '1', '2', '3');
    const [first = 0, second = 0, third = 0] = said.trim().split('\n').map(Number);
    // What was started may come to its turn late on a busy machine.
    expect(Math.min(second - first, third - second)).toBeGreaterThan(0.5);
  }, 60_000);

  it('-N gives each task several inputs, --header : names them', async () => {
    const map = (...words: readonly string[]) => agent.ok('map', '-k', ...words);
    expect(await map('-N', '2', 'echo {2}-{1}', ':::', 'a', 'b', 'c')).toBe('b-a\n-c\n');
    expect(await map('-n2', 'echo', ':::', 'a', 'b', 'c')).toBe('a b\nc\n');
    expect(await map('-N0', 'echo x', ':::', 'a', 'b')).toBe('x\nx\n');
    agent.file('grid.csv', 'alpha,data file\n0.1,d/x y.csv\n0.2,z\n');
    const words = ['--colsep', ',', '--header', ':', '--results', 'named', 'echo {alpha} {data file/.} {#}'];
    expect(await map(...words, '::::', 'grid.csv')).toBe('');
    expect(agent.read('named/alpha/0.1/data file/d\\_x y.csv/stdout')).toBe('0.1 x y 1\n');
    const files = ['--header', ':', '--input', '{f}', '--return', '{f}.out', 'cp {f} {f}.out'];
    await map(...files, ':::', 'f', agent.file('here', 'text').split('/').at(-1) ?? '');
    expect(agent.read('here.out')).toBe('text');
    await usage(['--header', 'x'], '--header cannot be "x".');
    await usage(['-N', '2', '--colsep', ','], '-N 2 takes whole lines, which --colsep splits.');
    await usage(['-N', '0', '--results', 'r'], '--results is by inputs, and -N 0 gives the tasks none.');
    await usage(['-N', '2', 'true', ':::', 'x'], '-N 2 takes the inputs from one list, and there are 2.');
  }, 60_000);

  it('--bar and --eta show at a terminal how far it is', async () => {
    const line = `${process.execPath} ${CLI} map -j 1 --bar --eta true ::: 1 2 >out.txt`;
    const said = execFileSync('script', ['-qec', line, '/dev/null'], {
      cwd: agent.work,
      env: agent.env,
      encoding: 'utf8',
    });
    expect(said).toMatch(/\[█{15}░{15}\] 50 % 1 of 2 done, \d+ s left/);
    const { stderr } = await agent.run(['map', '--bar', '--eta', 'true', ':::', '1', '2']);
    expect(stderr).toBe('');
  }, 60_000);

  it('an option that is not supported is an error that names it', async () => {
    for (const option of ['--pipe-part', '--retry-failed', '--sshlogin', '--xargs'])
      await usage([option], `Nonexistent flag: ${option}.`);
  }, 60_000);
});
