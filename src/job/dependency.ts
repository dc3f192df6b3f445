import { GryphusError } from '../errors.ts';

/** A job or, with `task`, one task of an array; `name`: jobs by their name, not resolved yet. */
export interface Target {
  readonly cluster: number;
  readonly task?: number;
  readonly name?: string;
}

const KINDS = ['after', 'afterany', 'afterok', 'afternotok', 'aftercorr', 'aftercorrany'] as const;
export type DependencyKind = (typeof KINDS)[number];

/** One condition on other jobs (sbatch's manual, `--dependency`). */
export type Term =
  | { readonly kind: DependencyKind; readonly targets: readonly Target[] }
  /** No other job of this name and user. */
  | { readonly kind: 'singleton' };

/** What a job waits for: all terms, or with `any` one of them. */
export interface Dependency {
  readonly any: boolean;
  readonly terms: readonly Term[];
}

/** An array's job has the number cluster × 10⁷ + task (src/batch-script/array.ts). */
const JOB_NUMBERS = 10_000_000;

/** `12`, `12_3`, `12[3].server`, `12[].server`, `12.server`, or a name. */
export function parseTarget(text: string): Target {
  const [, cluster, task] =
    /^(\d{1,15})(?:_(\d{1,8})|\[(\d*)\])?(?:\.[\w.-]*)?$/.exec(text)?.map((part) => part ?? '') ?? [];
  const inBrackets = /\[(\d+)\]/.exec(text)?.[1];
  if (cluster === undefined) return { cluster: 0, name: text };
  const index = task !== undefined && task !== '' ? task : inBrackets;
  const number = Number(cluster);
  if (index !== undefined) return { cluster: number, task: Number(index) };
  if (number >= JOB_NUMBERS) return { cluster: Math.floor(number / JOB_NUMBERS), task: number % JOB_NUMBERS };
  return { cluster: number };
}

/** Reads Slurm's and PBS's form. Throws GryphusError 'bad-input'. */
export function parseDependency(text: string): Dependency {
  const any = text.includes('?');
  const terms = text
    .split(any ? '?' : ',')
    .filter((one) => one.trim() !== '')
    .map((one) => parseTerm(one.trim(), text));
  if (terms.length === 0) throw wrong(text);
  return { any, terms };
}

function parseTerm(term: string, text: string): Term {
  if (term === 'singleton') return { kind: 'singleton' };
  const [first = '', ...rest] = term.split(':');
  const kind = KINDS.find((one) => one === first);
  // Ids alone mean afterany.
  if (kind === undefined && rest.length === 0 && /^\d/.test(first))
    return { kind: 'afterany', targets: [parseTarget(first)] };
  if (kind === undefined || rest.length === 0) throw wrong(text, first);
  const targets = rest.map((id) => {
    // Minutes of delay after the start.
    if (/^\d+\+\d+$/.test(id)) throw wrong(text, id);
    return parseTarget(id);
  });
  return { kind, targets };
}

function wrong(text: string, what?: string): GryphusError {
  return new GryphusError(
    'bad-input',
    `The dependency '${text}' is not understood${what === undefined ? '' : `: '${what}'`}.`,
    {
      suggestions: [`Write ${KINDS.slice(0, 5).join(', ')} with the ids of jobs, as in afterok:12:13, or singleton.`],
    },
  );
}

export function printDependency({ any, terms }: Dependency): string {
  const print = (term: Term) =>
    term.kind === 'singleton'
      ? 'singleton'
      : [
          term.kind,
          ...term.targets.map(
            ({ cluster, task, name }) => name ?? (task === undefined ? `${cluster}` : `${cluster}_${task}`),
          ),
        ].join(':');
  return terms.map(print).join(any ? '?' : ',');
}
