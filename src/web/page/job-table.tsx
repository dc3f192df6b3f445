import { useEffect, useRef, useState } from 'preact/hooks';
import { get, type Row, type Table } from './api.ts';
import { bytes, duration, number, when } from './format.ts';
import { useLive, useNow } from './live.ts';
import { useTallScroll } from './tall-scroll.ts';
import { Empty, JobLink, State, Text, Wrong } from './parts.tsx';

/** Pixels, as in the style sheet. */
const ROW_HEIGHT = 32;
/** Rows fetched before and after those that are seen. */
const AROUND = 30;

interface Column {
  readonly name: string;
  readonly title: string;
  readonly shown: boolean;
  readonly sort?: string;
  readonly cell: (row: Row, now: number) => preact.ComponentChildren;
}

const COLUMNS: readonly Column[] = [
  { name: 'job', title: 'Job', shown: true, sort: 'id', cell: ({ job }) => <JobLink job={job} /> },
  {
    name: 'state',
    title: 'State',
    shown: true,
    sort: 'state',
    cell: ({ shows, state }) => <State of={shows} words={state} />,
  },
  { name: 'batch', title: 'Batch', shown: true, sort: 'batch', cell: ({ batch }) => <Text of={batch} most={100} /> },
  { name: 'node', title: 'Node', shown: false, cell: ({ node }) => <Text of={node} most={100} /> },
  {
    name: 'command',
    title: 'Command',
    shown: true,
    sort: 'command',
    cell: ({ command }) => <Text of={command} most={200} />,
  },
  { name: 'owner', title: 'Owner', shown: false, sort: 'owner', cell: ({ owner }) => <Text of={owner} /> },
  { name: 'site', title: 'Site', shown: true, sort: 'site', cell: ({ site }) => <Text of={site} /> },
  { name: 'host', title: 'Host', shown: true, sort: 'host', cell: ({ host }) => <Text of={host} most={100} /> },
  { name: 'submitted', title: 'Submitted', shown: true, sort: 'submitted', cell: ({ submitted }) => when(submitted) },
  {
    name: 'runtime',
    title: 'Run time',
    shown: true,
    sort: 'runtime',
    cell: ({ started, ran }, now) => duration(ran + (started === undefined ? 0 : Math.max(0, now / 1000 - started))),
  },
  {
    name: 'memory',
    title: 'Memory',
    shown: true,
    sort: 'memory',
    cell: ({ memory }) => (memory === undefined ? '–' : bytes(memory * 2 ** 20)),
  },
  { name: 'prio', title: 'Priority', shown: false, sort: 'prio', cell: ({ prio }) => prio },
  { name: 'runs', title: 'Runs', shown: false, cell: ({ runs }) => runs },
  {
    name: 'note',
    title: 'Reason or exit',
    shown: true,
    cell: ({ hold, exit }) => <Text of={hold === '' ? exit : hold} most={300} />,
  },
];
const SHOWN = 'gryphus-columns';

export function JobTable({
  where,
  box,
  chosen,
  choose,
  all,
  chooseAll,
}: {
  readonly where: 'queue' | 'history';
  readonly box: string;
  readonly chosen: ReadonlySet<string>;
  readonly choose: (jobs: ReadonlySet<string>) => void;
  readonly all: boolean;
  readonly chooseAll: (all: boolean) => void;
}) {
  const [sort, setSort] = useState({ by: 'id', descending: true });
  const [height, setHeight] = useState(640);
  const [shown, setShown] = useState<ReadonlySet<string>>(
    new Set(localStorage.getItem(SHOWN)?.split(',') ?? COLUMNS.filter((one) => one.shown).map(({ name }) => name)),
  );
  const now = useNow();
  const scroller = useRef<HTMLDivElement>(null);
  const [found, setFound] = useState(0);
  const view = Math.max(ROW_HEIGHT, height - ROW_HEIGHT);
  const { top, place, drawn, onScroll } = useTallScroll(found * ROW_HEIGHT, view);
  const first = Math.min(found, Math.floor(place / ROW_HEIGHT));
  const offset = Math.max(0, first - AROUND - (first % AROUND));
  const limit = Math.min(1000, Math.ceil(height / ROW_HEIGHT) + 3 * AROUND);
  const query = new URLSearchParams({
    where,
    box,
    sort: sort.by,
    descending: String(sort.descending),
    offset: String(offset),
    limit: String(limit),
  });
  const key = query.toString();
  const { data, error } = useLive(key, async (signal) => ({
    key,
    offset,
    table: await get<Table>(`/jobs?${key}`, signal),
  }));
  useEffect(() => {
    if (data) setFound(data.table.found);
  }, [data]);
  useEffect(() => {
    const { current } = scroller;
    if (!current) return undefined;
    const measure = new ResizeObserver(() => setHeight(current.clientHeight));
    measure.observe(current);
    return () => measure.disconnect();
  }, []);
  useEffect(() => {
    scroller.current?.scrollTo({ top: 0 });
  }, [box, where, sort]);
  const fetched = data?.table.rows ?? [];
  // Where the first row that is there would stand; those that have no room, at the ends of a list that is too tall, are not drawn.
  const at = top - place + (data?.offset ?? 0) * ROW_HEIGHT;
  const above = Math.min(fetched.length, Math.max(0, Math.ceil(-at / ROW_HEIGHT)));
  const room = Math.max(0, Math.floor((drawn - at) / ROW_HEIGHT));
  const rows = fetched.slice(above, room);
  const start = (data?.offset ?? 0) + above;
  const before = Math.max(0, Math.min(drawn - rows.length * ROW_HEIGHT, at + above * ROW_HEIGHT));
  const after = Math.max(0, drawn - before - rows.length * ROW_HEIGHT);
  const columns = COLUMNS.filter(({ name }) => shown.has(name));
  const selectable = where === 'queue';
  const toggle = (job: string): void => {
    const next = new Set(chosen);
    if (!next.delete(job)) next.add(job);
    chooseAll(false);
    choose(next);
  };
  const pick = (name: string): void => {
    const next = new Set(shown);
    if (!next.delete(name)) next.add(name);
    localStorage.setItem(SHOWN, [...next].join());
    setShown(next);
  };
  return (
    <>
      <div id="box-error">
        <Wrong error={error} />
      </div>
      <p class="muted line" role="status">
        {data
          ? `${number(found)} of ${number(data.table.all)} jobs${data.table.more ? ' that ended last' : ''}`
          : 'Looking at the queue …'}
        <details class="columns">
          <summary>Columns</summary>
          <fieldset>
            <legend class="hidden">Columns</legend>
            {COLUMNS.map(({ name, title }) => (
              <label key={name}>
                <input type="checkbox" checked={shown.has(name)} onChange={() => pick(name)} /> {title}
              </label>
            ))}
          </fieldset>
        </details>
      </p>
      <div
        class="scroll tall"
        ref={scroller}
        tabIndex={0}
        role="region"
        aria-label="Jobs"
        onScroll={(event) => onScroll(event.currentTarget)}
        aria-busy={data?.key !== key}
      >
        <table class="rows" aria-rowcount={found}>
          <thead>
            <tr>
              {selectable && (
                <th scope="col" class="check">
                  <input
                    type="checkbox"
                    aria-label="Select all that fit the box"
                    checked={all}
                    disabled={found === 0}
                    onChange={() => chooseAll(!all)}
                  />
                </th>
              )}
              {columns.map(({ name, title, sort: by }) => (
                <th
                  key={name}
                  scope="col"
                  aria-sort={by === sort.by ? (sort.descending ? 'descending' : 'ascending') : undefined}
                >
                  {by === undefined || where === 'history' ? (
                    title
                  ) : (
                    <button
                      type="button"
                      class="head"
                      onClick={() => setSort({ by, descending: by === sort.by ? !sort.descending : false })}
                    >
                      {title}
                      <span aria-hidden="true">{by === sort.by ? (sort.descending ? ' ↓' : ' ↑') : ''}</span>
                    </button>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr class="space" aria-hidden="true" style={{ height: `${before}px` }} />
            {rows.map((row, i) => (
              <tr
                key={row.job}
                aria-rowindex={start + i + 1}
                data-job={row.job}
                class={all || chosen.has(row.job) ? 'chosen' : ''}
              >
                {selectable && (
                  <td class="check">
                    <input
                      type="checkbox"
                      aria-label={`Select ${row.job}`}
                      checked={all || chosen.has(row.job)}
                      onChange={() => toggle(row.job)}
                    />
                  </td>
                )}
                {columns.map(({ name, cell }) => (
                  <td key={name}>{cell(row, now)}</td>
                ))}
              </tr>
            ))}
            <tr class="space" aria-hidden="true" style={{ height: `${after}px` }} />
          </tbody>
        </table>
      </div>
      {data && found === 0 && (
        <Empty>
          {data.table.all === 0
            ? where === 'queue'
              ? 'No job is in the queue. Submit one: gryphus submit FILE'
              : 'No job has ended yet.'
            : 'No job fits the box. Words must all occur; site:NAME, state:held and cluster:12 look in one column.'}
        </Empty>
      )}
    </>
  );
}
