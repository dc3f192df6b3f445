import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import type { PoolOwner, PriorityChange } from '../index.ts';
import { GryphusCommand, prose, terminalWidth } from './command.ts';
import { CONDOR_USERPRIO } from './other-words.ts';
import { duration } from './show/dates.ts';
import { tableLines } from './show/table.ts';

const SETTERS = ['prio', 'factor', 'accum', 'begin', 'last'] as const;
type Setter = (typeof SETTERS)[number];

const LEAST: Readonly<Partial<Record<Setter, number>>> = { factor: 1, accum: 0, begin: 0, last: 0 };

function setter(summary: string) {
  return Flags.string({ helpValue: '<user=value>', summary });
}

export class Userprio extends GryphusCommand {
  static override summary = "Show or set the user priorities of the owners of the pool's jobs.";
  static override description =
    prose(`A smaller number is a better priority. The effective priority is the real priority times the factor. The real
priority approaches the number of cores that the owner uses, with a half-life of one day, and is never below 0.5. If all owners
want more cores, they share the pool in inverse proportion to the effective priority. With \`pool.priority = "updown"\` the priority
is the Up-Down index.

The options that set something, and \`-setprio user value\`, are condor_userprio's. An owner is written as it is shown, with its
accounting group (\`physics.alice\`).`);
  static override examples = [
    '<%= config.bin %> userprio',
    '<%= config.bin %> userprio --json',
    '<%= config.bin %> userprio --setfactor alice=2000',
    '<%= config.bin %> userprio -resetusage alice',
  ];
  static override flags = {
    setprio: setter('Set the real priority, or the Up-Down index.'),
    setfactor: setter('Set the priority factor, of at least 1.'),
    setaccum: setter('Set the accumulated usage, in core seconds.'),
    setbegin: setter('Set the time since when usage is accumulated, in Unix seconds.'),
    setlast: setter('Set the time of the last usage, in Unix seconds.'),
    resetusage: Flags.string({ helpValue: '<user>', summary: 'Set the accumulated usage to 0.' }),
    resetall: Flags.boolean({ summary: "Set all owners' accumulated usage to 0." }),
    delete: Flags.string({ helpValue: '<user>', summary: 'Forget everything about an owner.' }),
    json: Flags.boolean({ summary: 'A JSON array.' }),
  };
  static condor = CONDOR_USERPRIO;

  async run(): Promise<void> {
    const { flags } = await this.parse(Userprio);
    const changes = changesOf(flags);
    if (changes.length > 0)
      return this.withGryphus(flags, async (gryphus) => {
        for (const [change, said] of changes) {
          const after = await (await gryphus.accounts()).owners(change);
          process.stdout.write(`${said}${isRaised(change, after) ? BEST : ''}.\n`);
        }
      });
    const owners = await this.withGryphus(flags, async (gryphus) => (await gryphus.accounts()).owners(), false);
    const lines = flags.json
      ? [JSON.stringify(owners, undefined, 2)]
      : [...table(owners), `Number of users: ${owners.length}`];
    process.stdout.write(`${lines.join('\n')}\n`);
  }
}

function table(owners: readonly PoolOwner[]): string[] {
  const heads = [
    'User Name',
    ' Effective Priority',
    ' Priority Factor',
    ' Cores In Use',
    ' Total Usage (core-hrs)',
    ' Time Since Last Usage',
    ' Jobs Waiting',
  ];
  const now = Date.now() / 1000;
  const rows = owners.map(({ owner, priority, factor, inUse, usedHours, last, waiting }) => [
    owner,
    priority.toFixed(2),
    factor.toFixed(2),
    String(inUse),
    usedHours.toFixed(2),
    inUse > 0 ? '<now>' : last === 0 ? 'never' : duration(now - last),
    String(waiting),
  ]);
  return tableLines(heads, rows, terminalWidth(), { drops: ['Time Since Last Usage', 'Priority Factor'] });
}

type Given = Readonly<Partial<Record<`set${Setter}` | 'resetusage' | 'delete', string | undefined>>> & {
  readonly resetall?: boolean;
};

/** What is to be changed, and the sentence for each. */
function changesOf(flags: Given): [PriorityChange, string][] {
  const changes: [PriorityChange, string][] = SETTERS.flatMap((set) => {
    const given = flags[`set${set}`];
    if (given === undefined) return [];
    const [owner, value] = ownerAndValue(set, given);
    return [[{ owner, set, value }, `${WHAT[set]} of ${owner} is now ${value}`] as const];
  }).map(([change, said]) => [change, said]);
  if (flags.resetusage !== undefined)
    changes.push([{ owner: flags.resetusage, set: 'reset' }, `The accumulated usage of ${flags.resetusage} is now 0`]);
  if (flags.resetall === true) changes.push([{ set: 'reset' }, 'The accumulated usage of all owners is now 0']);
  if (flags.delete !== undefined)
    changes.push([{ owner: flags.delete, set: 'delete' }, `The pool has forgotten ${flags.delete}`]);
  return changes;
}

/** Follows what was set to less. */
const BEST = ', and counts as 0.5, the best that there is';

function isRaised({ owner, set, value = 0 }: PriorityChange, after: readonly PoolOwner[]): boolean {
  const found = after.find((one) => one.owner === owner);
  return set === 'prio' && value < 0.5 && found !== undefined && Math.abs(found.priority - value) > 0.1;
}

const WHAT: Readonly<Record<Setter, string>> = {
  prio: 'The priority',
  factor: 'The priority factor',
  accum: 'The accumulated usage, in core seconds,',
  begin: 'The time since when usage is accumulated',
  last: 'The time of the last usage',
};

function ownerAndValue(set: Setter, given: string): [string, number] {
  const [, owner = '', written = ''] = /^(.+?)\s*[=\s]\s*(\S+)$/s.exec(given) ?? [];
  const value = Number(written);
  if (owner === '' || written === '' || !Number.isFinite(value))
    throw new GryphusError('usage', `--set${set} ${given}: it must be USER=NUMBER.`);
  const least = LEAST[set];
  if (least !== undefined && value < least)
    throw new GryphusError('usage', `--set${set} ${given}: the number must be at least ${least}.`);
  if ((set === 'begin' || set === 'last') && value > Date.now() / 1000)
    throw new GryphusError('usage', `--set${set} ${given}: that time has not come yet.`);
  return [owner, value];
}
