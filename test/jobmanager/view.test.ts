import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { condor } from '../../src/backends/condor.ts';
import type { Backend } from '../../src/backends/contract.ts';
import { fork } from '../../src/backends/fork.ts';
import { pbs } from '../../src/backends/pbs.ts';
import { slurm } from '../../src/backends/slurm.ts';
import { torque } from '../../src/backends/torque.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { SiteAnswer, AnswerLine } from '../../src/jobmanager/answer.ts';
import { View } from '../../src/jobmanager/view.ts';

const KEY: AttemptKey = 'a.1.0.1';
const OTHER: AttemptKey = 'a.1.1.1';
const OWNER = '1 host=n1 pid=7 pstart=9 boot=b start=1000 id=12 .';
const exit = (how: string, got = ''): string =>
  `1 how=${how} host=n1 start=1000 end=1010 cpu=0m1.50s,0m0.25s out=3 err=4 got=${got} id=12 words= .`;
const { patience } = slurm;

/** An answer with the given lines, each `KIND REST`. */
function answer(...lines: string[]): SiteAnswer {
  const read = (line: string): AnswerLine => {
    const at = line.indexOf(' ');
    return { kind: at === -1 ? line : line.slice(0, at), rest: at === -1 ? '' : line.slice(at + 1), bytes: undefined };
  };
  return { lines: lines.map(read), status: 0 };
}

/** A view and a clock; `say` applies an answer and classifies. */
function scene(backend: Backend = slurm) {
  const view = new View(backend);
  let now = 1_000_000;
  // What must be closed is closed at once.
  const judge = () => {
    const actions = view.classify(now);
    const closing = actions.get('close');
    if (closing === undefined) return actions;
    for (const { key, owner } of closing) view.closed(key, (owner?.run ?? 0) + 1);
    return new Map([...actions, ...view.classify(now)]);
  };
  return {
    view,
    say(...lines: string[]) {
      const events = view.take(answer(...lines), now);
      return { events, actions: judge() };
    },
    pass(ms: number) {
      now += ms;
      return judge();
    },
    committed(n = 1, id: string | undefined = '12') {
      view.prepared(KEY);
      view.submitted(KEY, n, id, now);
      view.classify(now);
    },
    get is() {
      return view.get(KEY)?.report;
    },
  };
}
const queue = (...lines: string[]): string[] => [...lines, 'queue diff'];
const line = (rest: string, n = 1, id = '12', key = KEY): string => `+ gryphus.${key}.${n} ${id} ${rest}`;

describe('what a site says of an attempt', () => {
  it('follows an ordinary life', () => {
    const s = scene();
    s.view.prepared(KEY);
    s.pass(0);
    expect(s.is).toEqual({ key: KEY, is: 'prepared' });
    s.committed();
    expect(s.is).toEqual({ key: KEY, is: 'queued', batchId: '12' });
    s.say(...queue(line('PENDING||Resources')));
    expect(s.is).toEqual({ key: KEY, is: 'queued', batchId: '12', why: 'Resources' });
    expect(s.say(`event ${KEY}.1.s ${OWNER}`).events).toEqual([`${KEY}.1.s`]);
    expect(s.is).toEqual({ key: KEY, is: 'running', batchId: '12', host: 'n1', since: 1000 });
    s.say(`event ${KEY}.1.x ${exit('exited:3')}`);
    expect(s.is).toEqual({
      key: KEY,
      is: 'ended',
      how: { kind: 'exited', code: 3 },
      startedAt: 1000,
      endedAt: 1010,
      host: 'n1',
      usage: { userCpuSeconds: 1.5, systemCpuSeconds: 0.25 },
      stdoutBytes: 3,
      stderrBytes: 4,
    });
  });

  it.each([
    ['and nothing of it ended by itself', []],
    ['after its program was killed', [`event ${KEY}.1.x ${exit('signaled:9')}`]],
  ])('knows why a pool held what ran: %s', (_, more) => {
    const s = scene(condor);
    s.committed(1, '4.0');
    s.say(...queue(line('2 1 undefined undefined slot1@n1 undefined', 1, '4.0')));
    s.say(`event ${KEY}.1.s ${OWNER.replace('id=12', 'id=4.0')}`);
    expect(s.is).toMatchObject({ is: 'running' });
    s.pass(10_000);
    s.say(...more);
    s.pass(1);
    s.say(
      ...queue(`- gryphus.${KEY}.1 4.0`, line('5 1 34 0 undefined Job has gone over cgroup memory limit', 1, '4.0')),
    );
    s.pass(4000);
    s.say(...queue());
    expect(s.is).toMatchObject({
      is: 'ended',
      how: { kind: 'by-site', cause: 'out-of-memory', message: 'Job has gone over cgroup memory limit (code 34)' },
    });
    expect(s.view.get(KEY)).toBeDefined();
  });

  it('is never lost without two good answers, a grace and the lock', () => {
    const s = scene();
    s.committed();
    expect(s.pass(10 * patience.lost).has('fence')).toBe(false);
    expect(s.say('queue bad 1 x').actions.has('fence')).toBe(false);
    s.say(...queue());
    expect(s.say(...queue()).actions.has('fence')).toBe(false);
    expect(
      s
        .pass(patience.lost)
        .get('fence')
        ?.map((e) => e.key),
    ).toEqual([KEY]);
    expect(s.is?.is).toBe('queued');
    s.view.fencedBy(KEY, 1, 'lost');
    s.pass(0);
    expect(s.is?.is).toBe('lost');
  });

  it('is lost with what the submit command said, in one line', () => {
    const s = scene();
    s.view.prepared(KEY);
    s.view.refused(KEY, 1, 1, '\nERROR: Failed to commit.\nERROR: it is too big\n', 1_000_000);
    s.view.fencedBy(KEY, 1, 'lost');
    s.pass(0);
    expect(s.is).toMatchObject({ is: 'lost', why: 'ERROR: Failed to commit. ERROR: it is too big' });
  });

  it('is given up where the site can never start it, once it has said so for a while and the lock is ours', () => {
    const s = scene();
    s.committed();
    s.say(...queue(line('PENDING||JobHeldUser')));
    expect(s.pass(100_000).has('fence')).toBe(false);
    s.say(...queue(line('PENDING||PartitionTimeLimit')));
    expect(s.is).toMatchObject({ is: 'held-by-site', why: 'PartitionTimeLimit' });
    expect(s.pass(50_000).has('fence')).toBe(false);
    expect(s.pass(10_000).has('fence')).toBe(true);
    s.view.fencedBy(KEY, 1, 'lost');
    expect(s.pass(0).get('prune')).toHaveLength(1);
    expect(s.is).toMatchObject({ is: 'ended', how: { cause: 'unsatisfiable', message: 'PartitionTimeLimit' } });
  });

  it('is not given up where the site thinks better of it, or it has started', () => {
    const s = scene();
    s.committed();
    s.say(...queue(line('PENDING||PartitionTimeLimit')));
    s.say(...queue(line('PENDING||Priority')));
    expect(s.pass(100_000).has('fence')).toBe(false);
    expect(s.is).toMatchObject({ is: 'queued', why: 'Priority' });
    s.say(...queue(line('PENDING||PartitionTimeLimit')), `event ${KEY}.1.s ${OWNER}`);
    expect(s.pass(100).has('fence')).toBe(false);
  });

  it('is missed by answers that are the same, too', () => {
    const s = scene();
    s.committed();
    s.say(...queue());
    s.say('queue same');
    expect(s.pass(patience.lost).has('fence')).toBe(true);
  });

  it('is not lost where the queue has it under its tag, whatever its id', () => {
    const s = scene();
    s.committed(1, undefined);
    s.say(...queue(line('PENDING||Priority', 1, '99')));
    s.say(...queue());
    expect(s.pass(10 * patience.lost).has('fence')).toBe(false);
    expect(s.is).toMatchObject({ is: 'queued', batchId: '99' });
  });

  it('takes no other attempt with the same id for its own', () => {
    const s = scene();
    s.committed();
    s.say(...queue(line('RUNNING|n2|None', 1, '12', OTHER)));
    expect(s.is?.is).toBe('queued');
    s.say(...queue());
    expect(s.pass(patience.lost).has('fence')).toBe(true);
  });

  it('starts anew with the next submission, and an earlier copy is stale', () => {
    const s = scene();
    s.committed();
    s.view.fencedBy(KEY, 1, 'lost');
    s.pass(0);
    s.committed(2, '13');
    expect(s.is).toMatchObject({ is: 'queued', batchId: '13' });
    s.say(...queue(line('PENDING||Priority', 1, '12'), line('PENDING||Priority', 2, '13')));
    expect(s.view.staleCopies()).toEqual([`gryphus.${KEY}.1`]);
    expect(s.say(`event ${KEY}.1.s ${OWNER}`).events).toEqual([`${KEY}.1.s`]);
    expect(s.is?.is).toBe('queued');
  });

  it.each(['TIMEOUT', 'NODE_FAIL', 'PREEMPTED', 'OUT_OF_MEMORY', 'CANCELLED', 'DEADLINE'])(
    'is ended by the site: %s',
    (state) => {
      const s = scene();
      s.committed();
      s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('RUNNING|n1|None')));
      s.say(...queue(line(`${state}|n1|None`)));
      s.pass(10_000);
      expect(s.is).toMatchObject({
        is: 'ended',
        how: { kind: 'by-site', message: state },
        host: 'n1',
        startedAt: 1000,
      });
    },
  );

  it("waits for the site's verdict on an exit by a signal, and then gives both", () => {
    const s = scene();
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('RUNNING|n1|None')));
    s.say(`event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`);
    expect(s.is?.is).toBe('running');
    s.say(...queue(line('TIMEOUT|n1|TimeLimit')));
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'timeout' }, message: 'signal 15' });
  });

  it('holds the machine to be at fault where all plain processes were told to end, but not where we told them', () => {
    const s = scene(fork);
    s.committed();
    s.say(`event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`);
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'node-fail' }, message: 'signal 15' });

    const alone = scene(fork);
    alone.committed();
    alone.say(`event ${KEY}.1.x ${exit('signaled:15')}`);
    expect(alone.is).toMatchObject({ is: 'ended', how: { kind: 'signaled', signal: 15 } });

    const ours = scene(fork);
    ours.committed();
    ours.say(`job ${KEY} 1 c`);
    ours.say(`event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`);
    expect(ours.is).toMatchObject({ is: 'ended', how: { kind: 'signaled', signal: 15 } });
  });

  it('believes the exit by a signal where the site has nothing to say', () => {
    const s = scene();
    s.committed();
    s.say(`event ${KEY}.1.x ${exit('signaled:9')}`, ...queue(line('RUNNING|n1|None')));
    s.pass(patience.verdict);
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'signaled', signal: 9 } });
  });

  it('knows who ends it from a queue that still calls it running, also where it is gone a moment later', () => {
    const s = scene(pbs);
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('R|42||n1/0||Job run at 16:11 on (n1) and terminated by u@n1')));
    expect(s.is?.is).toBe('running');
    s.say(`event ${KEY}.1.x ${exit('exited:143', 'TERM')}`, ...queue(`- gryphus.${KEY}.1 12`));
    expect(s.is).toMatchObject({
      is: 'ended',
      how: { kind: 'by-site', cause: 'cancelled' },
      message: 'exit status 143',
    });
  });

  it.each([
    [10, { kind: 'by-site', cause: 'timeout' }],
    [11, { kind: 'signaled', signal: 15 }],
  ])('believes a signal at its end of time to be of the site where nobody says: %i s', (limit, how) => {
    const s = scene(pbs);
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line(`R|42||n1/0|00:00:${limit}|Job run at 16:50 on (n1)`)));
    s.say(`event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`);
    for (let ask = 0; ask < 2; ask++) {
      s.pass(pbs.patience.verdict);
      s.say(...queue(`- gryphus.${KEY}.1 12`));
      s.view.accountFor('12', 'nothing');
    }
    s.pass(0);
    expect(s.is).toMatchObject({ is: 'ended', how });
  });

  it.each([
    ['signaled:15', 'TERM', '00:00:10', { kind: 'by-site', cause: 'timeout' }],
    ['signaled:15', 'TERM', '00:01:00', { kind: 'by-site', cause: 'cancelled' }],
    ['exited:143', 'TERM', '00:01:00', { kind: 'by-site', cause: 'cancelled' }],
    ['signaled:15', '', '00:01:00', { kind: 'signaled', signal: 15 }],
  ])('knows an end that the queue gives no status of: %s, told %j, limit %s', (how, told, limit, ending) => {
    for (const after of [line(`C|||n1/0|${limit}|`), `- gryphus.${KEY}.1 12`]) {
      const s = scene(torque);
      s.committed();
      s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line(`R|||n1/0|${limit}|`)));
      s.say(`event ${KEY}.1.x ${exit(how, told)}`, ...queue(after));
      s.pass(torque.patience.verdict);
      expect(s.is).toMatchObject({ is: 'ended', how: ending });
    }
    const ours = scene(torque);
    ours.committed();
    ours.say(`job ${KEY} 1 c`);
    ours.say(`event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`, ...queue(`- gryphus.${KEY}.1 12`));
    ours.pass(torque.patience.verdict);
    expect(ours.is).toMatchObject({ is: 'ended', how: { kind: 'signaled', signal: 15 } });
  });

  it('takes the end by a signal of what the site starts again for no end of its own', () => {
    const s = scene(pbs);
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('R|42||n1/0||Job run at 16:43 on (n1)')));
    s.say(`event ${KEY}.1.x ${exit('exited:143', 'TERM')}`);
    s.say(...queue(line('X|93|217|||Job run at 16:44 on (n1) and failed')), `event ${KEY}.1.d ${OWNER}`);
    expect(s.is).toMatchObject({
      is: 'ended',
      how: { kind: 'by-site', cause: 'requeued' },
      message: 'exit status 143',
    });
  });

  it('waits for the verdict as long as the queue has not seen its end', () => {
    const s = scene(pbs);
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('R|42||n1/0||Job run at 16:11 on (n1)')));
    s.say(`event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`);
    s.pass(10_000);
    expect(s.is?.is).toBe('running');
    s.say(...queue(line('E|51|-29|n1/0||Job run at 16:11 on (n1)')));
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'timeout' }, message: 'signal 15' });
  });

  it('asks the accounting at once where an exit by a signal is gone from the queue, and once more', () => {
    const s = scene(pbs);
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('R|42||n1/0||Job run at 16:11 on (n1)')));
    s.say(`event ${KEY}.1.x ${exit('signaled:9')}`);
    s.pass(1);
    expect(s.say(...queue(`- gryphus.${KEY}.1 12`)).actions.has('account')).toBe(true);
    s.view.accountFor('12', 'nothing');
    expect(s.pass(1000).has('account')).toBe(false);
    expect(s.pass(pbs.patience.verdict).has('account')).toBe(true);
    s.view.accountFor('12', 'nothing');
    s.pass(0);
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'signaled', signal: 9 } });
  });

  it('was put back where a copy of the same job came after its program was killed', () => {
    const killed = (copy: string) => {
      const s = scene(condor);
      s.committed();
      s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('2 0 undefined undefined slot1@n1 undefined')));
      s.say(`event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`);
      s.say(`event ${KEY}.1.d 1 host=n2 id=${copy} .`);
      return s.is;
    };
    expect(killed('12')).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'requeued' } });
    expect(killed('13')).toMatchObject({ is: 'running' });
  });

  it('was put back where the end of the lease shows that its host was gone, whatever killed it there', () => {
    const s = scene(condor);
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('2 0 undefined undefined slot1@n1 undefined')));
    s.say(`event ${KEY}.1.x ${exit('signaled:9')}`);
    s.pass(2_400_000);
    expect(s.is).toMatchObject({ is: 'running' });
    s.say(...queue(`- gryphus.${KEY}.1 12`, line('1 1 undefined undefined undefined undefined')));
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'requeued' }, message: 'signal 9' });
  });

  it('is not requeued by a line that is older than its start', () => {
    const s = scene();
    s.committed();
    s.say(...queue(line('PENDING||Priority')));
    s.pass(60_000);
    s.say(`event ${KEY}.1.s ${OWNER}`);
    s.pass(60_000);
    expect(s.is?.is).toBe('running');
    s.say(...queue());
    expect(s.is).toMatchObject({ is: 'queued', why: 'Priority' });
  });

  it('waits again where the site put it back, and runs again once its new run says so', () => {
    const s = scene();
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('RUNNING|n1|None')));
    s.say(`event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`);
    s.pass(1000);
    s.say(...queue(line('PENDING||BeginTime')));
    expect(s.is).toMatchObject({ is: 'queued', why: 'BeginTime' });
    s.say(...queue(line('RUNNING|n2|None')));
    s.pass(60_000);
    expect(s.is?.is).toBe('queued');
    s.say(
      `event ${KEY}.1.s1 1 host=n2 pid=8 start=2000 run=1 id=12 .`,
      `event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`,
    );
    expect(s.is).toMatchObject({ is: 'running', host: 'n2', since: 2000, run: 1 });
    s.say(`event ${KEY}.1.x1 ${exit('exited:0')}`);
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'exited', code: 0 }, run: 1 });
  });

  it.each([
    ['did not start it again, as nothing shows that its former run is over', slurm, true],
    ['does not say that it runs it again', pbs, false],
  ])('is ended by its site, which put it back and %s', (_, backend, second) => {
    const s = scene(backend);
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line(backend === slurm ? 'PENDING||BeginTime' : 'Q|||||')));
    s.pass(60_000);
    if (second) s.say(`event ${KEY}.1.d ${OWNER}`);
    s.say(...queue());
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'requeued' } });
  });

  it('was ended by its site, not by its own signal, where the run that it waited for never began', () => {
    const s = scene();
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('RUNNING|n1|None')));
    s.say(`event ${KEY}.1.x ${exit('signaled:15', 'TERM')}`);
    s.pass(1000);
    s.say(...queue(line('PENDING||BeginTime')));
    s.say(...queue(line('FAILED|n1|NonZeroExitCode')));
    s.pass(60_000);
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'requeued' }, message: 'signal 15' });
  });

  it('is not over before the site can run it no more', () => {
    const view = new View(slurm);
    view.prepared(KEY);
    view.submitted(KEY, 1, '12', 0);
    view.take(answer(`event ${KEY}.1.s ${OWNER}`, ...queue(line('NODE_FAIL|n1|None'))), 0);
    view.classify(0);
    expect(view.classify(10_000).get('close')).toHaveLength(1);
    view.taken(KEY, 10_000);
    view.classify(11_000);
    expect(view.get(KEY)?.report?.is).toBe('running');
    view.classify(10_000 + patience.lag);
    expect(view.get(KEY)?.report).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'node-fail' } });
  });

  it('waits for an exit record that is late, not for ever', () => {
    const s = scene();
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('COMPLETED|n1|None')));
    s.pass(patience.lag - 1);
    expect(s.is?.is).toBe('running');
    // It may exist, although its notice found no space on the disk.
    expect(s.pass(1).has('list')).toBe(true);
    expect(s.is?.is).toBe('running');
    s.say(`job ${KEY} 1 -`, 'id 12', `owner ${OWNER}`, 'all');
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'vanished' } });
  });

  it('reads the record of an end that was not announced', () => {
    const s = scene();
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue(line('RUNNING|n1|None')));
    for (let look = 0; look < 3; look++) s.say(...queue(`- gryphus.${KEY}.1 12`));
    expect(s.pass(patience.lag + 1).has('account')).toBe(true);
    s.view.accountFor('12', 'nothing');
    expect(s.pass(1).has('list')).toBe(true);
    s.say(`job ${KEY} 1 -`, 'id 12', `owner ${OWNER}`, `exit ${exit('exited:3')}`, 'all');
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'exited', code: 3 } });
  });

  it('believes the accounting of what is gone from the queue within seconds', () => {
    const s = scene();
    s.committed();
    s.say(...queue(line('RUNNING|n1|None')), `event ${KEY}.1.s ${OWNER}`);
    s.say(...queue(`- gryphus.${KEY}.1 12`));
    s.say(...queue());
    expect(s.say(...queue()).actions.has('account')).toBe(true);
    // It lags behind the queue, and is not queried at each poll.
    s.view.accountFor('12', 'nothing');
    expect(s.pass(1000).has('account')).toBe(false);
    expect(s.pass(1000).has('account')).toBe(true);
    s.view.accountFor('12', { id: '12', by: 'cancelled', message: 'failed 100', key: KEY });
    s.pass(1500);
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'cancelled' } });
  });

  it('asks the accounting before it says that a started job vanished', () => {
    const s = scene();
    s.committed();
    s.say(`event ${KEY}.1.s ${OWNER}`, ...queue());
    s.say(...queue());
    expect(s.pass(patience.lag).has('account')).toBe(true);
    s.view.accountFor('12', { id: '12', by: 'out-of-memory', message: 'OUT_OF_MEMORY', key: OTHER });
    expect(s.pass(0).has('account')).toBe(true);
    s.view.accountFor('12', { id: '12', by: 'node-fail', message: 'NODE_FAIL', key: KEY });
    s.pass(0);
    expect(s.is).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'node-fail' } });
  });

  it('says what it does not understand', () => {
    const s = scene();
    s.committed();
    s.say(...queue(line('LEVITATING|n1|Magic')));
    expect(s.is).toEqual({ key: KEY, is: 'unclear', batchId: '12', message: 'LEVITATING Magic' });
  });
});

describe('the view', () => {
  it('reads a listing, finds the lines that came before, and drops what is not listed', () => {
    const s = scene();
    s.view.prepared(OTHER);
    s.say(line('PENDING||Priority'), 'queue full', `job ${KEY} 1 -`, 'id 12', 'all');
    expect(s.is).toMatchObject({ is: 'queued', why: 'Priority' });
    expect(s.view.get(OTHER)).toBeUndefined();
  });

  describe('keeps what is in the queue though its directory is gone', () => {
    const lost = 'its directory there is gone: deleted, or on a file system that is not mounted; ';

    it('as unclear, until it leaves the queue', () => {
      const s = scene();
      s.committed();
      s.say(...queue(line('RUNNING|n1|None')), `event ${KEY}.1.s ${OWNER}`);
      s.say(line('RUNNING|n1|None'), 'queue full', 'all');
      expect(s.is).toEqual({
        key: KEY,
        is: 'unclear',
        batchId: '12',
        message: `${lost}the queue has it as 12, running`,
      });
      expect(s.view.vanished).toBe(0);
      expect(s.view.linesWithoutRecord(KEY).map(({ tag }) => tag)).toEqual([`gryphus.${KEY}.1`]);
      // One answer without it proves nothing.
      s.say(`- gryphus.${KEY}.1 12`, 'queue diff');
      s.pass(patience.lost);
      expect(s.view.vanished).toBe(0);
      s.say('queue same');
      s.say('queue same');
      expect(s.view.vanished).toBe(0);
      s.pass(patience.lost);
      expect([s.view.vanished, s.is]).toEqual([1, undefined]);
    });

    it('and follows it again once the directory is back', () => {
      const s = scene();
      s.committed();
      s.say(line('RUNNING|n1|None'), 'queue full', 'all');
      s.say('queue same', `job ${KEY} 1 -`, 'id 12', `owner ${OWNER}`, 'all');
      expect(s.is).toMatchObject({ is: 'running', host: 'n1' });
      expect(s.view.linesWithoutRecord(KEY)).toEqual([]);
    });

    it('also an element of an array whose map is lost with it, by its id', () => {
      const s = scene();
      s.committed(1, '12_3');
      s.say(...queue(line('RUNNING|n1|None', 1, '12_3')));
      const element = 'gryphus.a.1.9.1.1.a[3] 12_3';
      s.say(`- gryphus.${KEY}.1 12_3`, `+ ${element} RUNNING|n1|None`, 'queue diff', 'all');
      expect(s.is).toMatchObject({ is: 'unclear', batchId: '12_3' });
      expect(s.view.linesWithoutRecord(KEY).map(({ tag }) => tag)).toEqual(['gryphus.a.1.9.1.1.a[3]']);
      s.say(
        `- ${element}`,
        `+ gryphus.${KEY}.1 12_3 RUNNING|n1|None`,
        'queue diff',
        `job ${KEY} 1 -`,
        'id 12_3',
        'all',
      );
      expect(s.is).toMatchObject({ is: 'running' });
    });

    it.each([
      ['by its tag', `gryphus.${KEY}.2 12`, undefined],
      ['by its id', 'gryphus.a.1.9.1.1.a[3] 12_3', '12_3'],
    ])('also for an agent that begins anew, and knows it %s', (_, there, id) => {
      const s = scene();
      s.view.promise(
        new Map([
          [KEY, id],
          [OTHER, '99'],
        ]),
      );
      s.say(`+ ${there} PENDING||Priority`, 'queue full', 'all');
      expect(s.is).toMatchObject({ is: 'unclear', message: expect.stringContaining('waiting') });
      expect(s.view.get(OTHER)).toBeUndefined();
      expect(s.view.linesWithoutRecord(KEY).map(({ tag }) => tag)).toEqual([there.split(' ')[0]]);
    });

    it('but not what has ended there', () => {
      const s = scene();
      s.committed();
      s.view.promise(new Map([[OTHER, '13']]));
      s.say(line('COMPLETED|n1|None'), line('COMPLETED|n1|None', 1, '13', OTHER), 'queue full', 'all');
      expect([s.is, s.view.get(OTHER), s.view.vanished]).toEqual([undefined, undefined, 1]);
    });
  });

  it('reports each change once', () => {
    const s = scene();
    s.committed();
    const seen = s.view.change;
    s.say(...queue(line('RUNNING|n1|None')));
    expect(s.view.reports(seen).map((r) => r.is)).toEqual(['running']);
    s.say(...queue());
    expect(s.view.reports(s.view.change)).toEqual([]);
    expect(s.view.reports(0).length).toBe(1);
  });

  it('whatever is said, an attempt ends only by a record or by two sources of the site, and never starts twice', () => {
    const states = fc.constantFrom(
      'PENDING||None',
      'RUNNING|n1|None',
      'COMPLETED|n1|None',
      'NONSENSE||',
      'SUSPENDED||None',
    );
    const words = fc.oneof(
      states.map((state) => [line(state), 'queue diff']),
      fc.constant(['queue bad 1 x']),
      fc.constant([`- gryphus.${KEY}.1 12`, 'queue diff']),
      fc.string().map((text) => [`event ${text}`]),
      fc.string().map((text) => [`+ ${text}`, 'queue diff']),
      fc.string().map((text) => [text]),
    );
    const action = fc.oneof(words, fc.integer({ min: 0, max: 5000 }));
    fc.assert(
      fc.property(fc.array(action, { maxLength: 30 }), (actions) => {
        const s = scene();
        s.committed();
        for (const what of actions) {
          if (typeof what === 'number') s.pass(what);
          else s.say(...what);
          // The lock was not taken and the submission not fenced: neither an end nor a loss may be reported.
          expect(s.is?.is === 'ended' || s.is?.is === 'lost').toBe(false);
        }
      }),
    );
  });
});
