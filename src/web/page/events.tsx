import { useEffect, useState } from 'preact/hooks';
import { type EventLine, get } from './api.ts';
import { when } from './format.ts';
import { useChanges, useLive } from './live.ts';
import { Empty, Grid, JobLink, Text, Wrong } from './parts.tsx';

const KEPT = 2000;
const SHOWN = 300;

/** What was seen stays when the view is left and opened again. */
const store: { lines: EventLine[] } = { lines: [] };

export function EventsView() {
  const { data, error } = useLive('events', (signal) => get<EventLine[]>('/events', signal), {
    on: ({ all }) => all === true,
  });
  const [, redraw] = useState(0);
  const [box, setBox] = useState('');
  const [paused, setPaused] = useState(false);
  useEffect(() => {
    if (!data) return;
    store.lines = data;
    redraw((n) => n + 1);
  }, [data]);
  useChanges(({ lines }) => {
    if (paused || lines.length === 0) return;
    const known = new Set(store.lines.slice(-500).map(({ cursor }) => cursor));
    store.lines = [...store.lines, ...lines.filter(({ cursor }) => !known.has(cursor))].slice(-KEPT);
    redraw((n) => n + 1);
  });
  const words = box.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ kind, job = '', site = '', text }: EventLine): boolean => {
    const hay = `${kind} ${job} ${site} ${text}`.toLowerCase();
    return words.every((word) => hay.includes(word));
  };
  const shown = store.lines.filter(fits).slice(-SHOWN).reverse();
  return (
    <>
      <Wrong error={error} />
      <div class="tools">
        <input
          type="search"
          aria-label="Words that must occur"
          placeholder="words: held, 12.3, c1"
          value={box}
          onInput={(event) => setBox(event.currentTarget.value)}
        />
        <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? 'Go on' : 'Pause'}
        </button>
      </div>
      {shown.length === 0 ? (
        <Empty>
          {store.lines.length === 0 ? 'Nothing has happened since the page was started.' : 'No event has these words.'}
        </Empty>
      ) : (
        <Grid label="Events" heads={['Time', 'Kind', 'Job', 'Site', 'What']}>
          {shown.map(({ cursor, at, kind, job, site, text }) => (
            <tr key={cursor}>
              <td>{when(at / 1000)}</td>
              <td>{kind}</td>
              <td>{job === undefined ? '' : <JobLink job={job} />}</td>
              <td>
                <Text of={site ?? ''} />
              </td>
              <td class="wide">
                <Text of={text} most={400} />
              </td>
            </tr>
          ))}
        </Grid>
      )}
    </>
  );
}
