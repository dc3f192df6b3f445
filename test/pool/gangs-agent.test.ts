import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parentOf } from '../../src/pool/host/processes.ts';
import { parseUserLog } from '../../src/user-log/text.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching, processesOf } from '../agent/kill.ts';

/** Logs of HTCondor 23.9 with the same jobs; the line about who ended the job is left out, which is not read. */
const RECORDED = new URL('../fixtures/user-log/parallel/', import.meta.url);
const recorded = (name: string) =>
  readFileSync(new URL(name, RECORDED), 'utf8').replaceAll(/\n\n\tJob terminated of its own accord.*$/gm, '');
const PAGE = readFileSync(join(import.meta.dirname, '../../docs/parallel.md'), 'utf8');
const example = (name: string): string =>
  new RegExp(`^\\*\\*${name}\\*\\*[^\\n]*:\\n\\n\`\`\`\\w*\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(PAGE)?.[1] ?? '';
const HAS = (program: string) => existsSync(join('/usr/bin', program));

/** Events as kinds with their nodes: what HTCondor and Gryphus have in common. */
function story(text: string): string[] {
  return parseUserLog(text, Date.now()).events.map((event) => {
    const { type, subproc = 0 } = event;
    const how = 'exitCode' in event ? ` ${event.exitCode}` : 'signal' in event ? ` signal ${event.signal}` : '';
    return `${type} ${subproc}${how}${type === 'execute' ? ` ${event.host}` : ''}`;
  });
}

describe('parallel jobs in the pool of a whole agent', { timeout: 240_000 }, () => {
  let agent: TestAgent;
  beforeAll(async () => {
    agent = new TestAgent();
    agent.env['GRYPHUS_CRASH_FILE'] = join(agent.dir, 'crash-point');
    agent.config('[pool]\ncpus = 8\nmemory = "8G"\n[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
    agent.file(
      'a.sh',
      [
        '#!/bin/sh',
        'echo "$_CONDOR_PROCNO $_CONDOR_NPROCS" "$@"',
        'echo "$_CONDOR_PROCNO" >"made.$_CONDOR_PROCNO"; echo "$_CONDOR_PROCNO" >same',
        '[ "$_CONDOR_PROCNO" = 0 ] && { sleep 3; exit 7; }',
        '[ "$_CONDOR_PROCNO" = 1 ] && { sleep 1; exit 3; }',
        'exec sleep 100',
      ].join('\n'),
      0o755,
    );
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  const PARALLEL = 'universe = parallel\nrequest_memory = 50\nshould_transfer_files = yes\n';
  const wait = (cluster: number) => agent.run(['wait', String(cluster), '--timeout', '120']);

  it('have the events, numbers, files and exit that they have in HTCondor', async () => {
    const cluster = await agent.submit(
      `${PARALLEL}machine_count = 3\nexecutable = a.sh\narguments = n$(Node) x\noutput = out.$(Node)\nlog = one.log\nqueue`,
    );
    await wait(cluster);
    const [ad] = await agent.ads(cluster);
    expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 7, CurrentHosts: 0 });
    expect(String(ad?.['AllRemoteHosts']).split(',')).toHaveLength(3);
    expect(['out.0', 'out.1'].map((name) => agent.read(name))).toEqual(['0 3 n0 x\n', '1 3 n1 x\n']);
    expect(['made.0', 'made.1', 'same'].map((name) => agent.read(name))).toEqual(['0\n', '1\n', '0\n']);
    expect(story(agent.read('one.log'))).toEqual(story(recorded('one.log')));
  });

  it('get input files by the number of their node, in all jobs of a cluster', async () => {
    for (const node of [0, 1, 2]) agent.file(`in ${node}`, `for ${node}`);
    agent.file('all', 'for all');
    agent.file('in.sh', '#!/bin/sh\ncat "in $1"; ls | grep -c "^in "; cat all\n', 0o755);
    const cluster = await agent.submit(
      `${PARALLEL}+ParallelShutdownPolicy = "WAIT_FOR_ALL"\nexecutable = in.sh\narguments = $(Node)\noutput = in.out.$(Node)
      transfer_input_files = all, in $(Node)
      machine_count = 1\nqueue\nmachine_count = 2\nqueue`,
    );
    await wait(cluster);
    expect([0, 1, 2].map((node) => agent.read(`in.out.${node}`))).toEqual(
      [0, 1, 2].map((node) => `for ${node}1\nfor all`),
    );
  });

  it('are held when a node lacks its input file, with its name', async () => {
    const cluster = await agent.submit(
      `${PARALLEL}executable = a.sh\ntransfer_input_files = in.none.$(Node)\nmachine_count = 2\nqueue`,
    );
    const [ad] = await until('the hold', async () => {
      const ads = await agent.ads(cluster);
      return ads[0]?.['JobStatus'] === 5 ? ads : undefined;
    });
    expect(ad?.['HoldReason']).toContain('in.none.0');
    await agent.ok('rm', String(cluster));
  });

  it('go on from what each node saved when node 0 exits with checkpoint_exit_code, with all they have written', async () => {
    agent.file(
      'save.sh',
      [
        '#!/bin/sh',
        'turn=$(cat state 2>/dev/null || echo 0); turn=$((turn + 1))',
        'echo "$_CONDOR_PROCNO: turn $turn"',
        'echo "$turn" >state; echo x >"of.$_CONDOR_PROCNO.$turn"; ls >"list.$_CONDOR_PROCNO"',
        '[ "$_CONDOR_PROCNO" = 0 ] || exec sleep 100',
        'sleep 1; [ "$turn" = 3 ] || exit 85',
      ].join('\n'),
      0o755,
    );
    const cluster = await agent.submit(
      `${PARALLEL}executable = save.sh\nmachine_count = 2\noutput = save.$(Node)\nlog = save.log
      checkpoint_exit_code = 85\ntransfer_output_files = list.$(Node)\ntransfer_checkpoint_files = state\nqueue`,
    );
    await wait(cluster);
    expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0, NumCkpts: 2 });
    for (const node of [0, 1])
      expect(agent.read(`save.${node}`)).toBe([1, 2, 3].map((turn) => `${node}: turn ${turn}\n`).join(''));
    expect(agent.read('list.1')).toContain('of.1.3');
    expect(agent.read('list.1')).not.toMatch(/of\.(0|1\.2)/);
  });

  it('must have one checkpoint_exit_code', async () => {
    agent.file('job.sub', `${PARALLEL}machine_count = 1\nexecutable = a.sh\nqueue\ncheckpoint_exit_code = 85\nqueue`);
    const { code, stderr } = await agent.run(['submit', 'job.sub']);
    expect([code, stderr]).toEqual([
      65,
      expect.stringContaining('must be the same for all jobs of a parallel cluster'),
    ]);
  });

  it('are suspended whole, and run again when all of a node is killed', async () => {
    const ledger = join(agent.work, 'ledger-s');
    const finish = join(agent.work, 'finish-s');
    agent.file(
      'tick.sh',
      `#!/bin/sh\necho "$GRYPHUS_KEY" >>${ledger}\necho $$ >${agent.work}/pid.$_CONDOR_PROCNO\nwhile [ ! -e ${finish} ]; do date +%s%N >${agent.work}/tick.$_CONDOR_PROCNO; sleep 0.2; done\n`,
      0o755,
    );
    const cluster = await agent.submit(
      `${PARALLEL}executable = tick.sh\nmachine_count = 1\nqueue\nmachine_count = 2\nqueue`,
    );
    const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : []);
    const status = (wanted: number) =>
      until(
        `status ${wanted}`,
        async () => (await agent.ads(cluster)).every((ad) => ad['JobStatus'] === wanted) || undefined,
      );
    const ticks = () => [0, 1, 2].map((node) => agent.read(`tick.${node}`)).join();
    await until('the start', () => lines().length === 3 || undefined);
    await status(2);
    await agent.ok('suspend', `${cluster}.0`);
    await status(7);
    for (const id of [`${cluster}.0`, `${cluster}.1`])
      expect(await agent.ok('why', id)).toContain('Suspended by its user (gryphus suspend).');
    let before = ticks();
    await until('stillness', async () => {
      const last = before;
      await delay(700);
      before = ticks();
      return last === before || undefined;
    });
    await agent.ok('continue', `${cluster}.1`);
    await status(2);
    await until('ticks of all', () => {
      const now = ticks().split(',');
      return before.split(',').every((tick, node) => tick !== now[node]) || undefined;
    });
    const program = Number(agent.read('pid.2'));
    const waiter = parentOf(program) ?? 0;
    const starter = parentOf(waiter) ?? 0;
    for (const pid of [starter, waiter, program]) process.kill(pid, 'SIGKILL');
    await until('the second start', () => lines().length === 6 || undefined, 120_000);
    writeFileSync(finish, '');
    await wait(cluster);
    expect((await agent.ads(cluster)).map((ad) => ad['JobStatus'])).toEqual([4, 4]);
  });

  it('are several executables of one cluster, which start and end together', async () => {
    agent.file('c.sh', '#!/bin/sh\necho "$_CONDOR_PROCNO $_CONDOR_NPROCS $1"\nexec sleep 100\n', 0o755);
    agent.file('b.sh', '#!/bin/sh\necho "$_CONDOR_PROCNO $_CONDOR_NPROCS $1"\nsleep 1\nkill -9 $$\n', 0o755);
    const cluster = await agent.submit(
      `${PARALLEL}executable = b.sh\noutput = two.$(Node)\nlog = two.log\narguments = first\nmachine_count = 1\nqueue
      executable = c.sh\narguments = second\nmachine_count = 2\nqueue`,
    );
    await wait(cluster);
    const ads = await agent.ads(cluster);
    expect(ads.map(({ ExitSignal }) => ExitSignal)).toEqual([9, 9]);
    expect(['two.0', 'two.1', 'two.2'].map((name) => agent.read(name))).toEqual([
      '0 3 first\n',
      '1 3 second\n',
      '2 3 second\n',
    ]);
    const first = story(
      agent
        .read('two.log')
        .split(/(?<=^\.\.\.\n)/m)
        .filter((event) => event.includes(`.000.`))
        .join(''),
    );
    expect(first).toEqual(story(recorded('two.log')));
  });

  it('of one cluster are held, released and removed together, and never start without each other', async () => {
    const ledger = join(agent.work, 'ledger-d');
    agent.file('d.sh', `#!/bin/sh\necho "$GRYPHUS_KEY" >>${ledger}\nexec sleep 100\n`, 0o755);
    const cluster = await agent.submit(
      `${PARALLEL}executable = d.sh\nmachine_count = 1\nqueue\nmachine_count = 2\nqueue`,
    );
    const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n').length : 0);
    const starts = (count: number) => until(`${count} starts`, () => lines() === count || undefined, 120_000);
    const all = (status: number) =>
      until(
        `status ${status}`,
        async () => (await agent.ads(cluster)).every((ad) => ad['JobStatus'] === status) || undefined,
        120_000,
      );
    await starts(3);
    await all(2);
    await agent.ok('hold', `${cluster}.1`);
    await all(5);
    await agent.ok('release', `${cluster}.0`);
    await starts(6);
    await all(2);
    await agent.ok('rm', `${cluster}.1`);
    await all(3);
    expect(lines()).toBe(6);
  });

  it('say which of them is missing when one is held', async () => {
    const cluster = await agent.submit(
      `${PARALLEL}executable = a.sh\nmachine_count = 20\nqueue\nmachine_count = 1\nhold = true\nqueue`,
    );
    await until(
      'the reason',
      async () => {
        const { stdout } = await agent.run(['why', `${cluster}.0`]);
        return stdout.includes(`Job ${cluster}.1, which starts together with it, is held.`) || undefined;
      },
      120_000,
    );
    await agent.ok('rm', String(cluster));
  });

  it.skipIf(!HAS('mpicc.mpich') || !HAS('mpicc.openmpi'))(
    "run the page's example with MPICH and with Open MPI, without ssh",
    async () => {
      agent.file('ring.c', example('ring.c'));
      for (const [mpi, script] of [
        ['mpich', 'mpichscript'],
        ['openmpi', 'openmpiscript'],
      ]) {
        execFileSync(`mpicc.${mpi}`, ['-o', join(agent.work, 'ring'), join(agent.work, 'ring.c')]);
        agent.file('pool-ring.sh', example('pool-ring.sh').replace('mpichscript', script ?? ''), 0o755);
        const cluster = await agent.submit(example('pool-ring.sub'));
        await wait(cluster);
        const [ad] = await agent.ads(cluster);
        expect(ad, agent.read('ring.err.0')).toMatchObject({ ExitCode: 0 });
        expect(agent.read('ring.out.0')).toBe('8 ranks, sum 28\n');
      }
    },
  );

  it('reach the nodes of their own job only', async () => {
    agent.file(
      'reach.sh',
      [
        '#!/bin/sh',
        '[ "$_CONDOR_PROCNO" = 0 ] || exec sleep 100',
        'echo hello | "$GRYPHUS_RSH" node1 "cat; echo \\$_CONDOR_PROCNO; echo err >&2; exit 9" 2>err; echo "$? $(cat err)"',
        '"$GRYPHUS_RSH" node7 true 2>&1; echo $?',
        '"$GRYPHUS_RSH" "node1;id" true 2>&1; echo $?',
        'sed "s/ .*/ stolen/" "$GRYPHUS_GANG" >fake; GRYPHUS_GANG=fake "$GRYPHUS_RSH" node1 true 2>&1; echo $?',
        // Without Perl, by Node.
        'mkdir bin; ln -s "$(command -v cat)" bin',
        'echo hello | PATH=$PWD/bin "$GRYPHUS_RSH" node1 "cat; echo err >&2; exit 8" 2>err; echo "$? $(cat err)"',
        'PATH=$PWD/bin GRYPHUS_GANG=fake "$GRYPHUS_RSH" node1 true 2>&1; echo $?',
      ].join('\n'),
      0o755,
    );
    const cluster = await agent.submit(
      `${PARALLEL}machine_count = 2\nexecutable = reach.sh\noutput = reach.$(Node)\nqueue`,
    );
    await wait(cluster);
    expect(agent.read('reach.0').split('\n')).toEqual([
      'hello',
      '1',
      '9 err',
      expect.stringContaining('The job has no node 7.'),
      '255',
      expect.stringContaining('is not a node of this job'),
      '255',
      expect.stringContaining('this is not a running node'),
      '255',
      'hello',
      '8 err',
      expect.stringContaining('this is not a running node'),
      '255',
      '',
    ]);
  });

  it('say why they wait when the pool can never have them, and do not keep others from running', async () => {
    const cluster = await agent.submit(`${PARALLEL}machine_count = 40\nexecutable = a.sh\nqueue`);
    const other = await agent.submit(
      `${PARALLEL}machine_count = 1\nexecutable = /bin/true\ntransfer_executable = false\nqueue`,
    );
    await wait(other);
    const why = await until('the reason', async () => {
      const { stdout } = await agent.run(['why', String(cluster)]);
      return stdout.includes('at once') ? stdout : undefined;
    });
    expect(why).toContain('It needs 40 slots at once, and the pool has 8 for it in all');
    await agent.ok('rm', String(cluster));
  });

  it.each([
    'whole_nodes = true',
    'input = in.$(Node)',
    'machine_count = 0',
    'machine_count = 1000000',
    'max_materialize = 1',
  ])('that ask for what cannot be are refused at submit: %s', async (line) => {
    agent.file('job.sub', `${PARALLEL}machine_count = 2\nexecutable = a.sh\n${line}\nqueue`);
    const { code, stderr } = await agent.run(['submit', 'job.sub']);
    expect(code).not.toBe(0);
    expect(
      stderr
        .trim()
        .split('\n')
        .filter((text) => text.startsWith('gryphus:') || text.includes('job.sub:')),
    ).toHaveLength(1);
  });

  it('go on when their worker is killed, and run again as a whole when they are vacated', async () => {
    const ledger = join(agent.work, 'ledger');
    const finish = join(agent.work, 'finish');
    agent.file(
      'again.sh',
      `#!/bin/sh\necho "$GRYPHUS_KEY" >>${ledger}\n[ "$_CONDOR_PROCNO" = 0 ] || exec sleep 100\nwhile [ ! -e ${finish} ]; do sleep 0.2; done\n`,
      0o755,
    );
    const cluster = await agent.submit(`${PARALLEL}machine_count = 3\nexecutable = again.sh\nqueue`);
    const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : []);
    const running = () =>
      until('the run', async () => ((await agent.ads(cluster))[0]?.['JobStatus'] === 2 ? true : undefined));
    await until('the start', () => lines().length === 3 || undefined);
    await running();
    killMatching('worker.mjs', agent);
    await until('another worker', () => processesOf('worker.mjs', agent).length > 0 || undefined);
    await until('the connection', async () =>
      (await agent.run(['vacate', String(cluster)])).code === 0 ? true : undefined,
    );
    await until('the second start', () => lines().length === 6 || undefined, 120_000);
    writeFileSync(finish, '');
    await wait(cluster);
    expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0 });
    expect(new Set(lines()).size).toBe(6);
  });

  it.each([
    'central-manager.before-gang',
    'central-manager.saved-gang',
    'central-manager.before-go',
    'central-manager.saved-go',
    'central-manager.before-over',
  ])('start whole and once if the central manager is killed at %s', async (point) => {
    const ledger = join(agent.work, `ledger-${point}`);
    agent.file(
      'once.sh',
      `#!/bin/sh\necho "$GRYPHUS_KEY" >>${ledger}\n[ "$_CONDOR_PROCNO" = 0 ] && sleep 1 || sleep 100\n`,
      0o755,
    );
    writeFileSync(join(agent.dir, 'crash-point'), point);
    const cluster = await agent.submit(`${PARALLEL}machine_count = 3\nexecutable = once.sh\nqueue`);
    await wait(cluster);
    expect(existsSync(join(agent.dir, 'crash-point')), 'the point was reached').toBe(false);
    const [ad] = await agent.ads(cluster);
    expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0 });
    const lines = readFileSync(ledger, 'utf8').trim().split('\n');
    expect(new Set(lines).size).toBe(lines.length);
    expect(lines.length % 3).toBe(0);
  });

  it('find slots set aside for them, and others do not', async () => {
    const [, id = ''] =
      /^Reservation (\S+):/.exec(await agent.ok('reserve', '--machines', '8', '--for', '1h', '--owner', 'ann')) ?? [];
    const cluster = await agent.submit(
      `${PARALLEL}machine_count = 1\nexecutable = /bin/true\ntransfer_executable = false\nqueue`,
    );
    await until('the hold', async () =>
      (await agent.ok('status', '--pool')).includes('8 slots held for reservation of ann') ? true : undefined,
    );
    expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 1 });
    const plain = await agent.submit('executable = /bin/true\ntransfer_executable = false\nqueue\n');
    await until('the reason', async () =>
      /what is free there is held for reservation of ann, .*\n.* 0 slots free and 8 that are in use or held: 1 slot short\./.test(
        await agent.ok('why', String(plain)),
      )
        ? true
        : undefined,
    );
    expect(JSON.parse(await agent.ok('reserve', '--json'))).toMatchObject([{ id, owner: 'ann', count: 8 }]);
    await agent.ok('reserve', '--drop', id);
    await wait(cluster);
    expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4 });
  });
});
