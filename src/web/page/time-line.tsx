import type { OneJob } from './api.ts';
import { duration, when } from './format.ts';
import { Empty } from './parts.tsx';
import { plain } from './plain.ts';

const SHOWN = 200;

/** What happened to a job, by its user log. */
export function TimeLine({ life }: { readonly life: OneJob['life'] }) {
  if (life.length === 0) return <Empty>Nothing is known of it yet.</Empty>;
  const start = life[0]?.at ?? 0;
  return (
    <>
      {life.length > SHOWN && (
        <p class="muted">
          The last {SHOWN} of {life.length} events.
        </p>
      )}
      <ol class="time-line">
        {life.slice(-SHOWN).map(({ at, type, text }, i) => (
          <li key={i} class={`on-${type}`}>
            <time dateTime={new Date(at).toISOString()}>{when(at / 1000)}</time>
            <span class="muted">{at === start ? '' : `+${duration((at - start) / 1000)}`}</span>
            <span class="event">{plain(text, 600)}</span>
          </li>
        ))}
      </ol>
    </>
  );
}
