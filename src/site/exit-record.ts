import type { Ending, Usage } from './contract.ts';

/** Who took run.lock. Times are Unix seconds by the site's clock. */
export interface Owner {
  readonly host: string | undefined;
  readonly startedAt: number | undefined;
  /** The batch system's id of the running copy, if it was passed on. */
  readonly batchId: string | undefined;
  /** How often the site had run it before in the same submission, and ended it. */
  readonly run: number;
}

/** How a program ended, as its wrapper recorded it. */
export interface ExitRecord {
  readonly ending: Ending;
  /** A signal was involved: it killed the program or one of its children, or told the wrapper to end the job. */
  readonly disturbed: boolean;
  /** The wrapper itself was told to end the job. */
  readonly told: boolean;
}

/** Each record is one line of `name=value` words that begins with a version and ends with ' .'; words= comes last. */
export function readOwner(line: string): Owner {
  const field = fields(line);
  return {
    host: text(field.get('host')),
    startedAt: integer(field.get('start')),
    batchId: text(field.get('id')),
    run: integer(field.get('run')) ?? 0,
  };
}

/** Undefined if the line is cut short. */
export function readExit(line: string): ExitRecord | undefined {
  if (!line.startsWith('1 ') || !line.endsWith(' .')) return undefined;
  const field = fields(line);
  const how = howOf(field.get('how') ?? '', field.get('words') ?? '');
  if (how === undefined) return undefined;
  const signals = (field.get('got') ?? '').split(',');
  const startedAt = integer(field.get('start'));
  const endedAt = integer(field.get('end'));
  const host = text(field.get('host'));
  const usage = usageOf(field.get('cpu') ?? '', integer(field.get('rss')));
  const killed = how.kind === 'signaled' || (how.kind === 'exited' && how.code > 128);
  return {
    told: signals.includes('TERM'),
    disturbed: killed || signals.some((name) => name === 'TERM' || name === 'XCPU'),
    ending: {
      how,
      ...(startedAt === undefined ? {} : { startedAt }),
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(host === undefined ? {} : { host }),
      ...(usage === undefined ? {} : { usage }),
      stdoutBytes: integer(field.get('out')) ?? 0,
      stderrBytes: integer(field.get('err')) ?? 0,
    },
  };
}

function fields(line: string): Map<string, string> {
  const at = line.indexOf(' words=');
  const message = at === -1 ? '' : line.slice(at + 7, -2);
  const found = new Map(
    (at === -1 ? line : line.slice(0, at)).split(' ').map((word) => {
      const eq = word.indexOf('=');
      return [word.slice(0, Math.max(0, eq)), word.slice(eq + 1)] as const;
    }),
  );
  return found.set('words', message);
}

function howOf(how: string, message: string): Ending['how'] | undefined {
  const [kind, number = '', core] = how.split(':');
  if (kind === 'cannot') return { kind: 'by-site', cause: 'cannot-start', message };
  if (!/^\d+$/.test(number)) return undefined;
  if (kind === 'exited') return { kind: 'exited', code: Number(number) };
  if (kind !== 'signaled') return undefined;
  return { kind: 'signaled', signal: Number(number), ...(core === 'core' ? { coreDumped: true } : {}) };
}

/** Reads `0m1.50s,0m0.02s`, as the shell's `times` prints user and system time, and the peak memory seen, in KB. */
function usageOf(cpu: string, maxRssKb: number | undefined): Usage | undefined {
  const [user, system] = cpu.split(',').map((part) => {
    const found = /^(\d+)m([\d.]+)s$/.exec(part);
    return found ? Number(found[1]) * 60 + Number(found[2]) : undefined;
  });
  if (user === undefined || system === undefined) return undefined;
  return { userCpuSeconds: user, systemCpuSeconds: system, ...(maxRssKb === undefined ? {} : { maxRssKb }) };
}

function integer(value: string | undefined): number | undefined {
  return value !== undefined && /^\d+$/.test(value) ? Number(value) : undefined;
}

function text(value: string | undefined): string | undefined {
  return value === undefined || value === '' || value === '-' ? undefined : value;
}
