import { describe, expect, it } from 'vitest';
import { jobChangesOf } from '../../src/dag/job-changes.ts';
import { nodesLogText } from '../../src/dag/nodes-log.ts';
import { decide } from '../../src/gridmanager/decide.ts';
import { Attrs, type AttrTexts } from '../../src/job/attrs.ts';
import type { Transitioned } from '../../src/job/events.ts';
import { parseUserLog } from '../../src/user-log/text.ts';
import type { JobRecord } from '../../src/queue/api.ts';

const AD: AttrTexts = {
  ExitCode: '3',
  RemoteUserCpu: '2.5',
  RemoteSysCpu: '0.5',
  CumulativeRemoteUserCpu: '7.0',
  CumulativeRemoteSysCpu: '1.0',
  LastRemoteWallClockTime: '4.0',
  BytesRecvd: '120.0',
  RequestCpus: '1',
  RequestMemory: '128',
  MemoryUsage: '6',
};

/** What the node jobs' log records for a job with this ad, from its completion on. */
function lastEvent(ad: AttrTexts) {
  const job = { state: 'fetched', attrs: new Attrs(ad) } as unknown as JobRecord;
  const step = { from: 'fetched', to: 'completing', ...decide(job, 0) } as unknown as Transitioned;
  const [change] = jobChangesOf(step);
  if (change === undefined) throw new Error('the job did not end');
  const text = nodesLogText({ about: 'job', at: 0, node: 'A', cluster: 7, proc: 0, change }, 'host', 'x.dag+1');
  return parseUserLog(text).events[0];
}

describe("the node jobs' log", () => {
  it('says what a job took, as a job of its own log does', () => {
    expect(lastEvent({ ...AD, DAGManJobId: '1' })).toMatchObject({
      type: 'terminated',
      exitCode: 3,
      sent: 120,
      runRemote: { user: 2, system: 0 },
      totalRemote: { user: 7, system: 1 },
      resources: [
        { name: 'Cpus', usage: 0.75, request: 1 },
        { name: 'Memory', usage: 6, request: 128 },
        { name: 'TimeExecute', usage: 4 },
      ],
    });
  });

  it.each([
    ['running', 'holding', 'by a user', { HoldReasonCode: '1', HoldReasonSubCode: '0' }, {}, ['004 1', '012 1 0']],
    ['suspended', 'holding', 'by a user', { HoldReasonCode: '1', HoldReasonSubCode: '0' }, {}, ['004 1', '012 1 0']],
    [
      'running',
      'stopping',
      'by its site',
      { HoldReasonCode: '35', HoldReasonSubCode: '2' },
      {},
      ['004 35', '012 35 2'],
    ],
    ['running', 'holding', 'by its policy', { HoldReasonCode: '3' }, { by: 'policy' }, ['012 3 0']],
    ['idle', 'held', 'by a user', { HoldReasonCode: '1' }, {}, ['012 1 0']],
  ])('a %s job that is %s, held %s', (from, to, _by, codes, info, events) => {
    const set = { HoldReason: '"via condor_hold"', ...codes };
    const step = { from, to, event: 'hold', set, info } as unknown as Transitioned;
    const text = jobChangesOf(step)
      .map((change) => nodesLogText({ about: 'job', at: 0, node: 'A', cluster: 7, proc: 0, change }, 'host', 'x.dag+1'))
      .join('');
    const said = parseUserLog(text).events.map((event) => {
      if (event.type === 'evicted') return `004 ${event.code}`;
      return event.type === 'held' ? `012 ${event.code} ${event.subcode}` : event.type;
    });
    expect(said).toEqual(events);
  });

  it('is not why jobs of no DAG carry more through the stream of events', () => {
    expect(lastEvent(AD)).toMatchObject({ type: 'terminated', exitCode: 3, totalRemote: { user: 0, system: 0 } });
    expect(lastEvent(AD)).not.toHaveProperty('resources');
  });
});
