import { join } from 'node:path';
import { HistoryFile } from '../../src/queue/history-file.ts';
import { HistoryRanges } from '../../src/queue/history-ranges.ts';
import type { HistoryEntry } from '../../src/queue/history-snapshot.ts';
import { ensurePrivateDir } from '../../src/util/private-file.ts';

const IN_A_FILE = 10_000;
const IN_A_CLUSTER = 1000;

/** A history of so many jobs, as the Scheduler writes it; all but the newest file are archived. Returns the seconds that took. */
export async function fill(stateDir: string, jobs: number): Promise<{ append: number; archive: number }> {
  const dir = join(stateDir, 'history');
  ensurePrivateDir(dir);
  const ranges = new HistoryRanges(dir);
  const spent = { append: 0, archive: 0 };
  for (let n = 0; n * IN_A_FILE < jobs; n++) {
    const name = n === 0 ? '2026-01.jsonl' : `2026-01-${String(n + 1).padStart(4, '0')}.jsonl`;
    const file = new HistoryFile(join(dir, name));
    const began = performance.now();
    const lines: Buffer[] = [];
    const entries: HistoryEntry[] = [];
    let at = 0;
    let place: readonly [number, number] = [0, 0];
    for (let i = n * IN_A_FILE; i < Math.min(jobs, (n + 1) * IN_A_FILE); i++) {
      const [cluster, proc] = [1 + Math.floor(i / IN_A_CLUSTER), i % IN_A_CLUSTER];
      const add = (value: object): readonly [number, number] => {
        const bytes = Buffer.from(`${JSON.stringify(value)}\n`);
        lines.push(bytes);
        at += bytes.length;
        return [at - bytes.length, bytes.length];
      };
      if (proc === 0) place = add({ c: cluster, ad: clusterAd(cluster) });
      const [offset, length] = add({
        j: `${cluster}.${proc}`,
        c: place,
        s: 'completed',
        t: 1_790_000_000 + i,
        own: own(cluster, proc, i),
      });
      entries.push({ cluster, proc, offset, length });
    }
    file.append(lines);
    file.index(entries);
    spent.append += performance.now() - began;
    if ((n + 1) * IN_A_FILE >= jobs) break;
    ranges.note(name);
    const before = performance.now();
    await file.archive();
    spent.archive += performance.now() - before;
  }
  return { append: spent.append / 1000, archive: spent.archive / 1000 };
}

/** The attributes that the pool's jobs have at their end. */
function own(cluster: number, proc: number, i: number): Record<string, string> {
  const at = 1_790_000_000 + Math.floor(i / 500);
  return {
    Args: `"${proc}"`,
    LastJobStatus: '2',
    EnteredCurrentStatus: String(at + 3),
    JobStartDate: String(at),
    JobCurrentStartDate: String(at),
    NumJobStarts: '1',
    RemoteHost: `"slot1_${1 + (i % 8)}@node${i % 97}"`,
    GridJobId: `"pool ${cluster}.${proc}.1"`,
    RemoteWallClockTime: String((i * 7919) % 4000),
    RemoteUserCpu: `${((i * 31) % 900) / 100}`,
    RemoteSysCpu: `${((i * 17) % 90) / 100}`,
    ResidentSetSize: String(2000 + ((i * 613) % 90_000)),
    ExitBySignal: 'false',
    ExitCode: i % 50 === 0 ? '1' : '0',
    CompletionDate: String(at + 3),
  };
}

function clusterAd(cluster: number): Record<string, string> {
  return {
    ClusterId: String(cluster),
    Owner: '"user"',
    Cmd: '"/home/user/bin/simulate"',
    Iwd: '"/home/user/work"',
    JobUniverse: '5',
    RequestCpus: '1',
    RequestMemory: '1024',
    RequestDisk: '10240',
    Requirements: '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Memory >= RequestMemory)',
    UserLog: '"/home/user/work/jobs.log"',
    Out: '"out"',
    Err: '"err"',
    QDate: String(1_789_900_000 + cluster),
  };
}
