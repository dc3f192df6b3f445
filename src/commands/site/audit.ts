import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import type { AuditedAttempt, OtherAgents } from '../../index.ts';
import { counted, spanText } from '../../util/plain-text.ts';
import { GryphusCommand, needed, Out, prose } from '../command.ts';
import { JsonList, listFlags } from '../json-list.ts';

export class SiteAudit extends GryphusCommand {
  static override summary = 'Compare what a site holds of yours with the queue.';
  static override description =
    prose(`Finds, by tag, attempts at the site that the queue does not know, and the reverse. --adopt and --clean settle one (by
its key) or all of them. Exit status 1 where something is left unsettled.

What is adopted is its job's again, and its results come home: a job that waits here, or one that was removed with rm --forcex
while the site did not answer, which comes back into the queue under its id. Jobs that completed, that run elsewhere, or that nobody
remembers cannot have it. What other agents of yours have there, of another machine or of a state directory that was lost, is named
with its age, and left alone.`);
  static override examples = [
    '<%= config.bin %> site audit cluster1',
    '<%= config.bin %> site audit cluster1 --clean all',
    '<%= config.bin %> site audit cluster1 --adopt a1b2.12.0.1',
  ];
  static override args = { name: needed('the site') };
  static override flags = {
    adopt: Flags.string({ helpValue: '<key|all>', summary: 'Let its job have it again.', exclusive: ['clean'] }),
    clean: Flags.string({ helpValue: '<key|all>', summary: 'Delete it at the site.' }),
    ...listFlags,
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SiteAudit);
    const how = flags.adopt === undefined ? 'clean' : 'adopt';
    const wanted = flags.adopt ?? flags.clean;
    await this.withGryphus(flags, async (gryphus) => {
      const all = await gryphus.audit(args.name);
      const entries = all.filter((one) => one.where !== 'other-agent');
      const others = all.filter((one) => one.where === 'other-agent');
      const some = entries.filter((one) => wanted === 'all' || one.key === wanted);
      if (wanted !== undefined && wanted !== 'all' && some.length === 0) {
        throw new GryphusError('not-found', `The audit of ${args.name} does not name '${wanted}'.`, {
          suggestions: [`See: gryphus site audit ${args.name}`],
        });
      }
      const refused = wanted === 'all' ? undefined : some.find((entry) => !entry.can.includes(how));
      if (wanted !== undefined && refused) {
        throw new GryphusError('not-permitted', `${wanted} cannot be ${PAST[how]}: ${whyNot(refused)}.`, {
          suggestions: [`gryphus site audit ${args.name}${refused.can.includes('clean') ? ` --clean ${wanted}` : ''}`],
        });
      }
      const out = new Out();
      const list = flags.json || flags.jsonl ? new JsonList(out, flags.jsonl) : undefined;
      for (const entry of entries) {
        const settle = some.includes(entry) && entry.can.includes(how);
        if (settle) await gryphus.settle(args.name, entry.key, how);
        else process.exitCode = 1;
        const place = entry.where === 'site-only' ? 'only at the site' : 'only in the queue';
        const end = settle
          ? PAST[how]
          : `can: ${entry.can.join(', ') || 'nothing'}${how === 'adopt' && some.includes(entry) ? `; ${whyNot(entry)}` : ''}`;
        if (list) list.add(JSON.stringify({ ...entry, settled: settle }));
        else out.line(`${entry.key}  ${place}: ${entry.words} (${end})`);
        await out.flush();
      }
      if (entries.length === 0 && !list) out.line(`${args.name} and the queue agree.`);
      for (const other of others) {
        if (list) list.add(JSON.stringify(other));
        else out.line(othersLine(args.name, other, Date.now() / 1000));
      }
      list?.end();
      await out.flush();
    });
  }
}

const PAST = { adopt: 'adopted', clean: 'cleaned' } as const;

/** `2 jobs of agent hCBlE8NRQY, which this queue is not, …` */
function othersLine(site: string, { agent, jobs, ended, queued, oldest, newest }: OtherAgents, now: number): string {
  const parts = [
    ...(ended > 0 ? [`${ended} ended`] : []),
    ...(queued > 0 ? [`${queued} in its queue`] : []),
    ...(newest === undefined ? [] : [`the last of ${spanText(now - newest)} ago`]),
    ...(oldest === undefined || newest === oldest ? [] : [`the first of ${spanText(now - oldest)} ago`]),
  ];
  const told = parts.length === 0 ? '' : ` (${parts.join(', ')})`;
  return `${site} also holds ${counted(jobs, 'job')} of agent ${agent}, which this queue is not${told}.`;
}

function whyNot({ where, unadoptable }: AuditedAttempt): string {
  return where === 'queue-only' ? 'the site does not have it' : (unadoptable ?? 'nobody knows it');
}
