import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import type { AuditedAttempt, OtherAgents } from '../../index.ts';
import { counted, spanText } from '../../util/plain-text.ts';
import { GryphusCommand, needed, Out, prose } from '../command.ts';
import { JsonList, listFlags } from '../json-list.ts';

export class SiteAudit extends GryphusCommand {
  static override summary = 'Compare what a site holds for you with the queue.';
  static override description =
    prose(`Finds attempts at the site that the queue does not know, and attempts in the queue that the site does not know. --adopt and
--clean resolve one of them (by its key) or all. Exit status 1 if anything is left unresolved.

An adopted attempt belongs to its job again, and its results come home. The job must be waiting here, or must have been removed
with rm --forcex while the site did not answer; then it returns to the queue under its id. Attempts of your other agents (of
another machine, or of a lost state directory) are listed with their age and left alone; \`gryphus recover\` takes them over.`);
  static override examples = [
    '<%= config.bin %> site audit cluster1',
    '<%= config.bin %> site audit cluster1 --clean all',
    '<%= config.bin %> site audit cluster1 --adopt a1b2.12.0.1',
  ];
  static override args = { name: needed('the site') };
  static override flags = {
    adopt: Flags.string({ helpValue: '<key|all>', summary: 'Give the attempt back to its job.', exclusive: ['clean'] }),
    clean: Flags.string({ helpValue: '<key|all>', summary: 'Delete the attempt at the site.' }),
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
        throw new GryphusError('not-found', `The audit of ${args.name} does not list '${wanted}'.`, {
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
        else out.line(`${entry.key}  ${place}: ${entry.message} (${end})`);
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

/** For example `2 jobs of agent hCBlE8NRQY, which this queue is not, …`. */
function othersLine(site: string, { agent, jobs, ended, queued, oldest, newest }: OtherAgents, now: number): string {
  const parts = [
    ...(ended > 0 ? [`${ended} ended`] : []),
    ...(queued > 0 ? [`${queued} in its queue`] : []),
    ...(newest === undefined ? [] : [`the last of ${spanText(now - newest)} ago`]),
    ...(oldest === undefined || newest === oldest ? [] : [`the first of ${spanText(now - oldest)} ago`]),
  ];
  const details = parts.length === 0 ? '' : ` (${parts.join(', ')})`;
  return `${site} also holds ${counted(jobs, 'job')} of another agent, ${agent}${details}.`;
}

function whyNot({ where, unadoptable }: AuditedAttempt): string {
  return where === 'queue-only' ? 'the site does not have it' : (unadoptable ?? 'it is unknown');
}
