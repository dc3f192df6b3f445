import type { MacroTable } from '../macros.ts';
import type { JobMaker, Step } from '../maker.ts';
import { stripQuotes } from '../text.ts';

function setOwn(job: JobMaker, command: string, attribute: string): void {
  if (attribute === '') throw job.fault(command, `Unable to insert expression: = ${job.param(command) ?? 'undefined'}`);
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(attribute)) {
    const text = `'${attribute}' cannot be the name of an attribute`;
    if (!job.scope.policy.dryRun)
      throw job.fault(command, text, ['A name has letters, digits and _ only, a letter first.']);
    job.warn(`${text}: a real submit is refused`, command);
  }
  job.setExpr(attribute, job.param(command) ?? 'undefined', command);
}

/** Whose the job is, the queue knows. As in HTCondor, nobody submits for somebody else, and no value is filled in. */
function setOwner(job: JobMaker, command: string, owner: string): void {
  const text = job.param(command) ?? 'undefined';
  if (/^undefined$/i.test(text)) return;
  job.setExpr('Owner', text, command);
  if (job.draft.string('Owner') === owner) return;
  const refused = `Setting owner to ${text} when active owner is "${owner}" is not permitted`;
  if (job.scope.policy.dryRun) return job.warn(`${refused}: a real submit is refused`, command);
  throw job.fault(command, refused, [`Leave the line out, or set accounting_group_user for another user's share.`]);
}

/** `+Attr = expr` and `MY.Attr = expr`: put into the ad unchanged, overriding what commands have set. */
export function forcedSteps(macros: MacroTable, owner: string): Step[] {
  return macros.all().flatMap(({ name }): Step[] => {
    const attribute = /^MY\.(.*)$/is.exec(name)?.[1];
    // The queue decides which cluster a job is in.
    if (attribute === undefined || attribute.toLowerCase() === 'clusterid') return [];
    const own = attribute.toLowerCase() === 'owner';
    const run = (job: JobMaker) => (own ? setOwner(job, name, owner) : setOwn(job, name, attribute));
    return [{ name: name.toLowerCase(), run }];
  });
}

function setName(job: JobMaker, macros: MacroTable): void {
  let grouped = false;
  let named: string | undefined;
  for (const { name } of macros.all()) {
    const attribute = /^JOBSET\.(.+)$/is.exec(name)?.[1];
    const value = attribute === undefined ? undefined : job.param(name);
    if (value === undefined) continue;
    grouped = true;
    if (attribute?.toLowerCase() === 'name') named = stripQuotes(value);
  }
  if (grouped && !job.draft.has('JobSetName')) job.setString('JobSetName', named ?? String(job.id.cluster));
}

/** The set to which the jobs of a cluster belong. */
export function jobSet(macros: MacroTable): Step {
  return {
    name: '(jobset)',
    run(job) {
      if (job.first) return setName(job, macros);
      if (!job.draft.own.has('jobsetname')) return;
      throw job.fault('jobset', 'All jobs from a single submission must be in the same JOBSET');
    },
  };
}
