import type { SiteChooser } from '../enqueue/site-choice.ts';
import { POOL_SITE } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { fixedAttribute } from '../job/fixed-attributes.ts';
import { formatJobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import { checkExpression, readString, whatItIs } from '../job/values.ts';
import type { Change, JobRecord, Queue } from '../queue/api.ts';
import { NUMBER_ATTRIBUTES, STRING_ATTRIBUTES } from '../submit/api.ts';
import { withMissing } from './act.ts';
import { move } from './move.ts';
import { selectJobs } from './select.ts';
import type { ActionResult, Selection } from './types.ts';

const INSTEAD: Readonly<Record<string, string>> = {
  jobstatus: 'gryphus hold, release or rm',
  jobuniverse: 'To run jobs elsewhere: gryphus move JOBS SITE, or gryphus move JOBS --pool',
  gryphussite: 'To run jobs elsewhere: gryphus move JOBS SITE, or gryphus move JOBS --pool',
};

/**
 * Sets attributes of the selected jobs. GridResource says where a job runs, so setting it moves the job. Rejects, and
 * changes nothing, if an attribute cannot be set or its value is invalid.
 */
export async function edit(
  queue: Queue,
  chooser: () => Promise<SiteChooser>,
  selection: Selection,
  set: Readonly<Record<string, string>>,
): Promise<ActionResult[]> {
  for (const [name, text] of Object.entries(set)) {
    refuseProtected(name);
    checkExpression(text, name);
  }
  const jobs: JobRecord[] = [];
  for await (const job of selectJobs(queue, selection)) jobs.push(job);
  const open = Object.entries(set).filter(([, text]) => !LITERAL.test(text.trim()));
  const [first] = jobs;
  if (first) checkKinds(first, Object.entries(set), set);
  const undefinedIn = open.length === 0 ? [] : jobs.map((job) => checkKinds(job, open, set));
  const elsewhere = Object.keys(set).find((name) => name.toLowerCase() === 'gridresource');
  if (elsewhere !== undefined) return moved(queue, await chooser(), selection, set, elsewhere);
  const answers = jobs.length === 0 ? [] : await queue.transitionMany(jobs.map(({ id }) => ({ id, set })));
  await matchAnew(queue, jobs);
  const results = answers.map((answer, i): ActionResult => {
    const id = jobs[i]?.id ?? { cluster: 0, proc: 0 };
    if (!answer.ok) return { id, result: 'not-found', message: answer.message };
    return { id, result: 'done', message: ['changed', ...(undefinedIn[i] ?? [])].join('; ') };
  });
  return withMissing(selection, results);
}

function refuseProtected(name: string): void {
  const low = name.toLowerCase();
  const kind = fixedAttribute(name);
  if (kind === undefined) return;
  const instead = INSTEAD[low];
  throw new GryphusError('not-permitted', `Update of ${kind} attribute "${name}" is not allowed.`, {
    suggestions: instead === undefined ? [] : [instead],
  });
}

/** Has the same value in every job. */
const LITERAL = /^(-?[\d.]+|"([^"\\]|\\.)*"|true|false)$/i;

/** Refuses a value of the wrong type; for others, returns notes about attributes they refer to that do not exist. */
function checkKinds(
  { id, attrs }: JobRecord,
  values: readonly (readonly [name: string, text: string])[],
  set: Readonly<Record<string, string>>,
): string[] {
  const said: string[] = [];
  for (const [name, text] of values) {
    const low = name.toLowerCase();
    const { kind, missing } = whatItIs(attrs, text, set);
    if (kind === 'undefined' && missing === undefined && /^undefined$/i.test(text.trim())) continue;
    const wanted = STRING_ATTRIBUTES.has(low) ? 'string' : NUMBER_ATTRIBUTES.has(low) ? 'number' : undefined;
    const because = missing === undefined ? '' : `: the job has no attribute ${missing}`;
    const wrong =
      wanted === 'string' ? kind !== 'string' : wanted === 'number' && (kind === 'string' || missing !== undefined);
    if (wrong) {
      throw new GryphusError(
        'bad-input',
        `${name} must be a ${wanted}, and ${text.trim()} is ${article(kind)} in job ${formatJobId(id)}${because}.`,
        {
          suggestions:
            wanted === 'string' && /^[\w./:@+-]+$/.test(text.trim())
              ? [`A string needs quotes: '${name}="${text.trim()}"'`]
              : [],
        },
      );
    }
    if (missing !== undefined) said.push(`${name} is undefined, because the job has no attribute ${missing}`);
  }
  return said;
}

function article(kind: string): string {
  return kind === 'undefined' ? 'undefined' : `${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind}`;
}

function moved(
  queue: Queue,
  chooser: SiteChooser,
  selection: Selection,
  set: Readonly<Record<string, string>>,
  name: string,
): Promise<ActionResult[]> {
  const { [name]: text = '', ...more } = set;
  const resource = readString({ get: () => text }, name);
  const to = resource === undefined ? undefined : chooser.site(resource);
  if (to === undefined || to.name === POOL_SITE.name) {
    throw new GryphusError('bad-input', `${name} cannot be ${text.trim()}: it names the site where a job runs.`, {
      suggestions: ['To run jobs in the pool: gryphus move JOBS --pool'],
    });
  }
  return move(queue, selection, to, more);
}

/**
 * The pool matches a job by its ad, so a job waiting there is taken back and sent again; one that has started runs on.
 */
async function matchAnew(queue: Queue, jobs: readonly JobRecord[]): Promise<void> {
  const waiting = jobs.filter(({ site, state }) => site === POOL_SITE.name && WAITS_IN_POOL.has(state));
  if (waiting.length === 0) return;
  await queue.transitionMany(waiting.map(({ id, state }): Change => ({ id, event: 'takeback', from: state })));
}

const WAITS_IN_POOL: ReadonlySet<State> = new Set(['preparing', 'prepared', 'committed']);
