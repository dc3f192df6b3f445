import type { ComponentChildren } from 'preact';
import type { ApiError } from './api.ts';
import { plain } from './plain.ts';

const SIGNS: Readonly<Record<string, string>> = {
  idle: '○',
  running: '▶',
  held: '■',
  completed: '✓',
  removed: '✕',
  suspended: '‖',
  transferring: '⇅',
  up: '✓',
  down: '✕',
  refused: '✕',
  'needs-login': '?',
  unused: '○',
  good: '✓',
  ended: '✕',
  unusable: '✕',
  early: '○',
};

/** A state by sign, word and colour: none of them is needed to tell it. */
export function State({ of, words }: { readonly of: string; readonly words?: string }) {
  return (
    <span class={`state is-${of}`}>
      <span aria-hidden="true">{SIGNS[of] ?? '·'}</span> {words ?? of}
    </span>
  );
}

/** Text of a job, a site or a file. */
export function Text({ of, most }: { readonly of: string; readonly most?: number }) {
  return <bdi>{plain(of, most)}</bdi>;
}

export function Wrong({ error }: { readonly error: ApiError | undefined }) {
  if (!error) return null;
  return (
    <div class="wrong" role="alert">
      <Text of={error.message} />
      {error.suggestions.length > 0 && (
        <ul>
          {error.suggestions.map((one) => (
            <li key={one}>
              <Text of={one} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

export function Panel({
  title,
  id,
  tools,
  children,
}: {
  readonly title: string;
  readonly id: string;
  readonly tools?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {tools}
      </header>
      {children}
    </section>
  );
}

/** A table that may be wider than the window. */
export function Grid({
  label,
  heads,
  children,
}: {
  readonly label: string;
  readonly heads: readonly string[];
  readonly children: ComponentChildren;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function JobLink({ job }: { readonly job: string }) {
  return <a href={`#/job/${job}`}>{job}</a>;
}

/** Leads to the jobs at a site. */
export function SiteLink({ site }: { readonly site: string }) {
  return (
    <a href={`#/jobs/${encodeURIComponent(`site:${site}`)}`}>
      <Text of={site} />
    </a>
  );
}

export function Bar({
  parts,
  total,
  label,
}: {
  readonly parts: readonly (readonly [state: string, count: number])[];
  readonly total: number;
  readonly label: string;
}) {
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={label}>
      {parts.map(([state, count], i) => {
        const before = parts.slice(0, i).reduce((sum, [, n]) => sum + n, 0);
        const width = total === 0 ? 0 : (100 * count) / total;
        return (
          <rect
            key={state}
            class={`fill-${state}`}
            x={total === 0 ? 0 : (100 * before) / total}
            y="0"
            width={width}
            height="8"
          />
        );
      })}
    </svg>
  );
}
