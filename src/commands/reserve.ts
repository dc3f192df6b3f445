import { randomBytes } from 'node:crypto';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import type { Gryphus, Reservation } from '../index.ts';
import { GryphusCommand, prose, terminalWidth } from './command.ts';
import { secondsOf } from './map-seconds.ts';
import { longDate } from './show/dates.ts';
import { tableLines } from './show/table.ts';

const DAY_SECONDS = 86_400;

export class Reserve extends GryphusCommand {
  static override summary =
    "Set machines of the pool aside for a while, for an owner's parallel jobs, or list what is.";
  static override description =
    prose(`Until the reservation begins, its slots run only jobs that are known to end before: those with a time limit
(\`batch_runtime\`), and of kinds whose run times are known. While it lasts, only the owner's parallel jobs use them. Without options,
lists the reservations.`);
  static override examples = [
    '<%= config.bin %> reserve --machines 8 --at 14:00 --for 1h',
    '<%= config.bin %> reserve --machines 2 --cpus 4 --memory 8000 --at 2030-06-01T08:00 --for 90m --owner alice',
    '<%= config.bin %> reserve',
    '<%= config.bin %> reserve --drop k3Jx',
  ];
  static override flags = {
    machines: Flags.integer({ char: 'm', helpValue: '<n>', min: 1, max: 999_999, summary: 'How many slots.' }),
    at: Flags.string({
      helpValue: '<time>',
      default: 'now',
      summary: 'When it begins: 14:00 (the next one), 2030-06-01T08:00, or now.',
    }),
    for: Flags.string({ helpValue: '<time>', summary: 'How long it lasts, as in 90m or 1h30m.' }),
    cpus: Flags.integer({ helpValue: '<n>', min: 1, default: 1, summary: 'Cores of each slot.' }),
    memory: Flags.integer({ helpValue: '<MB>', min: 0, default: 0, summary: 'Memory of each slot, in MB.' }),
    owner: Flags.string({ helpValue: '<user>', summary: 'Whose jobs may use it; default: yours.' }),
    drop: Flags.string({ helpValue: '<id>', summary: 'End a reservation, or take it back.' }),
    json: Flags.boolean({ summary: 'A JSON array of all reservations.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Reserve);
    const { machines, drop, json } = flags;
    const changes = machines !== undefined || drop !== undefined;
    await this.withGryphus(
      flags,
      async (gryphus) => {
        const accounts = await gryphus.accounts();
        if (drop !== undefined && !(await accounts.reservations()).some(({ id }) => id === drop))
          throw new GryphusError('not-found', `There is no reservation ${drop}.`, {
            suggestions: ['gryphus reserve lists them.'],
          });
        const make = machines === undefined ? undefined : reservation(flags, machines, gryphus.owner);
        const all = await accounts.reservations(
          changes ? { ...(make && { make }), ...(drop === undefined ? {} : { drop }) } : undefined,
        );
        if (make) process.stderr.write(await tooFew(gryphus, make));
        const lines = json ? [JSON.stringify(all, undefined, 2)] : said(all, make, drop);
        process.stdout.write(lines.map((line) => `${line}\n`).join(''));
      },
      changes,
    );
  }
}

/** A warning with the figures if the machines that the pool has now are too few; others may come before it begins. */
async function tooFew(gryphus: Gryphus, { count, size }: Reservation): Promise<string> {
  const machines = (await gryphus.slots('PartitionableSlot')).map((ad) => ({
    cpus: Number(ad['TotalCpus'] ?? 0),
    memoryMb: Number(ad['TotalMemory'] ?? 0),
  }));
  const most = machines.reduce((sum, { cpus, memoryMb }) => {
    const byMemory = size.memoryMb > 0 ? Math.floor(memoryMb / size.memoryMb) : Number.POSITIVE_INFINITY;
    return sum + Math.min(Math.floor(cpus / size.cpus), byMemory);
  }, 0);
  if (most >= count) return '';
  const cores = machines.reduce((sum, { cpus }) => sum + cpus, 0);
  const have = `${machines.length === 1 ? '1 machine' : `${machines.length} machines`} with ${cores} cores in all`;
  return `gryphus: warning: the pool can hold ${most} of these ${count} slots (${have}): the others are kept free only on machines that come.\n`;
}

function said(all: readonly Reservation[], make: Reservation | undefined, drop: string | undefined): string[] {
  if (make) return [`Reservation ${make.id}: ${whenOf(make)}.`];
  if (drop !== undefined) return [`Reservation ${drop} has ended.`];
  if (all.length === 0) return ['There are no reservations.'];
  const rows = all.map(({ id, owner, count, size, from, until }) => [
    id,
    owner,
    String(count),
    String(size.cpus),
    String(size.memoryMb),
    longDate(from * 1000),
    longDate(until * 1000),
  ]);
  return tableLines(['Id', 'Owner', ' Slots', ' Cores', ' MB', 'From', 'Until'], rows, terminalWidth());
}

function whenOf({ count, owner, from, until }: Reservation): string {
  return `${count} slots for ${owner} from ${longDate(from * 1000)} until ${longDate(until * 1000)}`;
}

function reservation(
  flags: {
    readonly at: string;
    readonly for?: string | undefined;
    readonly cpus: number;
    readonly memory: number;
    readonly owner?: string | undefined;
  },
  count: number,
  owner: string,
): Reservation {
  const lasts = secondsOf('--for', flags.for);
  if (lasts === undefined)
    throw new GryphusError('usage', '--for is missing: how long the reservation lasts.', {
      suggestions: [`gryphus reserve --machines ${count} --at ${flags.at} --for 1h`],
    });
  const from = momentOf(flags.at, Date.now() / 1000);
  const size = { cpus: flags.cpus, memoryMb: flags.memory, diskKb: 0, gpus: 0 };
  const id = randomBytes(3).toString('base64url').replaceAll('-', 'x');
  return { id, owner: flags.owner ?? owner, count, size, from, until: from + lasts };
}

/** Unix seconds. */
function momentOf(text: string, now: number): number {
  if (text === 'now') return Math.floor(now);
  const [, hours, minutes] = /^(\d{1,2}):(\d{2})$/.exec(text) ?? [];
  if (hours !== undefined && Number(hours) < 24 && Number(minutes) < 60) {
    const day = new Date(now * 1000);
    day.setHours(Number(hours), Number(minutes), 0, 0);
    const at = day.getTime() / 1000;
    return at > now ? at : at + DAY_SECONDS;
  }
  const at = Date.parse(text) / 1000;
  if (!Number.isFinite(at))
    throw new GryphusError('usage', `--at ${text}: this is not a time.`, {
      suggestions: ['Write 14:00, 2030-06-01T08:00, or now.'],
    });
  if (at < now) throw new GryphusError('usage', `--at ${text}: that time has passed.`);
  return at;
}
