import { useMemo } from 'preact/hooks';
import { get, type Need, type Overview } from './api.ts';
import { Chart } from './chart.tsx';
import { number } from './format.ts';
import { useLive } from './live.ts';
import { Bar, Empty, Grid, JobLink, Panel, State, Text, Wrong, SiteLink } from './parts.tsx';

const COUNTS = ['running', 'idle', 'held', 'suspended'] as const;
const NEEDS = {
  held: 'held',
  'log-in': 'log-in wanted',
  credential: 'credential',
  site: 'site',
  'user-log': 'user log',
  scheduler: 'Scheduler',
} as const;

/** How much of the past the charts show; seconds. */
const SHOWN_SECONDS = 6 * 3600;
/** The samples of that time which the server has sent so far. */
let past: Overview['samples'] = [];

/** Only what came since the last look is fetched: the server may have hours of samples. */
async function withPast(signal: AbortSignal): Promise<Overview> {
  const seen = past.at(-1)?.at ?? 0;
  const now = await get<Overview>(`/overview?after=${seen}`, signal);
  const newest = now.samples.at(-1)?.at ?? seen;
  // Another look may have had an answer in the meantime.
  past = [...past.filter(({ at }) => at <= seen && at > newest - SHOWN_SECONDS), ...now.samples];
  return { ...now, samples: past };
}

export function OverviewView() {
  const { data, error } = useLive('overview', withPast, { everyMs: 10_000 });
  const more = useLive('needs', (signal) => get<Need[]>('/needs', signal), { everyMs: 30_000 });
  const samples = data?.samples ?? [];
  // They are drawn again when there is another one, not at each change of a job.
  const newest = samples.at(-1)?.at;
  const times = useMemo(() => samples.map(({ at }) => at), [newest]);
  const states = useMemo(
    () => [
      { label: 'running', colour: '--running', values: samples.map((one) => one.running) },
      { label: 'idle', colour: '--idle', dash: [6, 4], values: samples.map((one) => one.idle) },
      { label: 'held', colour: '--held', dash: [2, 3], values: samples.map((one) => one.held) },
    ],
    [newest],
  );
  const ends = useMemo(
    () => [
      {
        label: 'ended',
        colour: '--completed',
        values: rates(
          samples.map((one) => one.ended),
          times,
        ),
      },
      {
        label: 'failed',
        colour: '--removed',
        dash: [6, 4],
        values: rates(
          samples.map((one) => one.failed),
          times,
        ),
      },
    ],
    [newest],
  );
  const needs = [...(data?.needs ?? []), ...(more.data ?? [])];
  const { totals } = data ?? {};
  if (totals?.jobs === 0 && samples.every((one) => one.ended === 0)) return <FirstJob error={error} />;
  return (
    <>
      <Wrong error={error} />
      <ul class="counts" aria-label="Jobs in the queue by state">
        {COUNTS.map((state) => (
          <li key={state}>
            <a href={`#/jobs/state:${state}`}>
              <b data-count={state}>{totals ? number(totals[state]) : '–'}</b>
              <State of={state} />
            </a>
          </li>
        ))}
      </ul>
      <Panel title="What needs you" id="needs">
        {needs.length === 0 ? (
          <Empty>{more.data ? 'Nothing: no job is held, every site that is used can be reached.' : '…'}</Empty>
        ) : (
          <ul class="needs">
            {needs.map((need) => (
              <li key={`${need.what}${need.name}${need.text}`}>
                <NeedLine need={need} />
              </li>
            ))}
          </ul>
        )}
      </Panel>
      <div class="pair">
        <Panel title="Jobs by state" id="states">
          <Chart times={times} series={states} label={`Jobs by state over time. Now: ${said(totals)}`} />
        </Panel>
        <Panel title="Ends per minute" id="ends">
          <Chart times={times} series={ends} label="Jobs that ended, and that failed, per minute over time" />
        </Panel>
      </div>
      <Panel title="Sites" id="overview-sites">
        <Grid
          label="Jobs by site"
          heads={['Site', 'Connection', 'Jobs', 'Waiting', 'Queued there', 'Running', 'Unknown']}
        >
          {(data?.sites ?? []).map((site) => (
            <tr key={site.name}>
              <th scope="row">
                <SiteLink site={site.name} />
              </th>
              <td>
                <State of={site.connection} />
              </td>
              <td>
                <Bar
                  label={`${site.running} running, ${site.queuedThere} queued, ${site.idle} waiting`}
                  total={site.running + site.queuedThere + site.idle}
                  parts={[
                    ['running', site.running],
                    ['transferring', site.queuedThere],
                    ['idle', site.idle],
                  ]}
                />
              </td>
              <td class="n">{number(site.idle)}</td>
              <td class="n">{number(site.queuedThere)}</td>
              <td class="n">{number(site.running)}</td>
              <td class="n">{number(site.unknown)}</td>
            </tr>
          ))}
        </Grid>
      </Panel>
    </>
  );
}

function said(totals: Overview['totals'] | undefined): string {
  return totals ? COUNTS.map((state) => `${totals[state]} ${state}`).join(', ') : 'unknown';
}

function rates(counts: readonly number[], times: readonly number[]): (number | null)[] {
  return counts.map((count, i) => {
    const seconds = (times[i] ?? 0) - (times[i - 1] ?? Number.NaN);
    return seconds > 0 ? (60 * count) / seconds : null;
  });
}

function NeedLine({ need: { what, text, count, jobs = [], name } }: { readonly need: Need }) {
  const where = { held: '#/jobs/state:held', 'log-in': '#/sites', site: '#/sites', credential: '#/credentials' }[
    what as string
  ];
  const head = `${count === undefined ? '' : `${number(count)} `}${NEEDS[what]}`;
  return (
    <>
      <span class={`tag is-${what}`}>{where === undefined ? head : <a href={where}>{head}</a>}</span>{' '}
      {name !== undefined && (
        <b>
          <Text of={name} />:{' '}
        </b>
      )}
      <Text of={text} most={500} />{' '}
      {jobs.map((job) => (
        <span key={job}>
          <JobLink job={job} />{' '}
        </span>
      ))}
    </>
  );
}

const FIRST = `executable = /bin/hostname
output = where.$(Process)
transfer_executable = false
queue 3`;

function FirstJob({ error }: { readonly error: Parameters<typeof Wrong>[0]['error'] }) {
  return (
    <div class="alone">
      <Wrong error={error} />
      <h2>No job is in the queue</h2>
      <p>Write these four lines into a file, for example first.sub:</p>
      <pre>{FIRST}</pre>
      <p>and submit it; this page shows its three jobs at once:</p>
      <pre>gryphus submit first.sub</pre>
      <p>
        Jobs that have ended are <a href="#/jobs">under Jobs</a>.
      </p>
    </div>
  );
}
