import { useEffect, useMemo, useState } from 'preact/hooks';
import { ActionDialog, ACTIONS } from './action.tsx';
import { type ActionName, get, type Log, type OneJob, type Usage, type Whys } from './api.ts';
import { Chart } from './chart.tsx';
import { bytes, duration, when } from './format.ts';
import { type Change, useLive, useNow } from './live.ts';
import { Output } from './output.tsx';
import { Empty, Grid, Panel, State, Text, Wrong } from './parts.tsx';
import { plain, plainLines } from './plain.ts';
import { TimeLine } from './time-line.tsx';

export function JobView({ job }: { readonly job: string }) {
  const mine = ({ jobs, clusters }: Change): boolean =>
    jobs === undefined || jobs.includes(job) || (jobs.length === 0 && clusters.includes(Number.parseInt(job, 10)));
  const { data, error, again } = useLive(`job ${job}`, (signal) => get<OneJob>(`/jobs/${job}`, signal), { on: mine });
  const why = useLive(`why ${job}`, (signal) => get<Whys>(`/jobs/${job}/why`, signal), { on: mine, everyMs: 15_000 });
  const [action, setAction] = useState<ActionName>();
  const now = useNow();
  if (!data) return <Wrong error={error} />;
  const { row } = data;
  const runs = row.shows === 'running' || row.shows === 'suspended';
  return (
    <>
      <Wrong error={error} />
      <div class="head-line">
        <h2>
          Job {row.job} <State of={row.shows} words={row.state} />
        </h2>
        {data.in === 'queue' ? (
          <div role="toolbar" aria-label="Actions on this job">
            {ACTIONS.map(([name, words]) => (
              <button key={name} type="button" onClick={() => setAction(name)}>
                {words}
              </button>
            ))}
          </div>
        ) : (
          <span class="muted">It has left the queue.</span>
        )}
      </div>
      <dl class="facts">
        <Fact name="Command" of={row.command} />
        <Fact name="Batch" of={row.batch} />
        <Fact name="Node" of={row.node} />
        <Fact name="Owner" of={row.owner} />
        <Fact name="Site" of={row.site} />
        <Fact name="Host" of={row.host} />
        <Fact name="Directory" of={data.directory} />
        <Fact name="Submitted" of={when(row.submitted)} />
        <Fact
          name="Run time"
          of={duration(row.ran + (row.started === undefined ? 0 : Math.max(0, now / 1000 - row.started)))}
        />
        <Fact name="Exit" of={row.exit} />
        <Fact name="Held because" of={row.hold} />
      </dl>
      <Panel title={runs ? 'How it is' : 'Why'} id="why">
        <Wrong error={why.error} />
        {(why.data ?? []).map(({ summary, details, suggestions }) => (
          <div key={summary}>
            <p class="says">
              <Text of={summary} />
            </p>
            <ul>
              {details.map((one) => (
                <li key={one}>
                  <Text of={one} />
                </li>
              ))}
            </ul>
            {suggestions.length > 0 && <pre class="small">{suggestions.map((one) => plain(one)).join('\n')}</pre>}
          </div>
        ))}
        {why.data?.length === 0 && (
          <Empty>{data.in === 'history' ? 'It ended well.' : 'There is nothing to explain.'}</Empty>
        )}
      </Panel>
      <Panel title="Its life" id="life">
        <TimeLine life={data.life} />
      </Panel>
      <Panel title="Where it ran" id="attempts">
        {data.attempts.length === 0 ? (
          <Empty>It has not run yet.</Empty>
        ) : (
          <Grid label="Attempts" heads={['Run', 'Where', 'Started', 'Took', 'How it ended']}>
            {data.attempts.map(({ number, host, started, ended, how }) => (
              <tr key={number}>
                <td>{number}</td>
                <td>
                  <Text of={host} />
                </td>
                <td>{when(started / 1000)}</td>
                <td>{duration(((ended ?? now) - started) / 1000)}</td>
                <td>
                  <Text of={how} />
                </td>
              </tr>
            ))}
          </Grid>
        )}
      </Panel>
      <Output job={job} attempt={data.attempt} />
      {(runs || data.memory.length > 1) && <UsagePanel job={job} runs={runs} past={data.memory} />}
      <Panel title="Files" id="files">
        {data.files.length === 0 ? (
          <Empty>It has no files.</Empty>
        ) : (
          <Grid label="Files" heads={['What', 'Name', 'Size']}>
            {data.files.map(({ role, name, bytes: size, missing }) => (
              <tr key={`${role} ${name}`}>
                <td>{role}</td>
                <td>
                  <Text of={name} most={500} />
                </td>
                <td class="n">{missing ? 'not there' : bytes(size)}</td>
              </tr>
            ))}
          </Grid>
        )}
      </Panel>
      <Fold title="Its user log">
        <UserLog job={job} mine={mine} />
      </Fold>
      <Fold title="Its ad">
        <Grid label="Attributes" heads={['Attribute', 'Expression']}>
          {data.ad.map(([name, text]) => (
            <tr key={name}>
              <th scope="row">
                <Text of={name} />
              </th>
              <td class="code">
                <Text of={text} />
              </td>
            </tr>
          ))}
        </Grid>
      </Fold>
      {action && (
        <ActionDialog
          action={action}
          choice={{ jobs: [job] }}
          close={() => {
            setAction(undefined);
            again();
          }}
        />
      )}
    </>
  );
}

function Fact({ name, of }: { readonly name: string; readonly of: string }) {
  if (of === '') return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Text of={of} most={500} />
      </dd>
    </div>
  );
}

/** What is drawn only once it is opened. */
function Fold({ title, children }: { readonly title: string; readonly children: preact.ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="panel" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {open && children}
    </details>
  );
}

function UserLog({ job, mine }: { readonly job: string; readonly mine: (change: Change) => boolean }) {
  const { data, error } = useLive(`log ${job}`, (signal) => get<Log>(`/jobs/${job}/log`, signal), { on: mine });
  if (!data) return <Wrong error={error} />;
  if (data.path === undefined) return <Empty>It has none. Jobs have one when their submit file says: log = FILE</Empty>;
  return (
    <>
      <p class="muted">
        <Text of={data.path} />
        {data.cut && ' (its end)'}
      </p>
      <pre class="output" tabIndex={0}>
        {plainLines(data.text)}
      </pre>
    </>
  );
}

interface Moment {
  readonly at: number;
  readonly mb: number | null;
  readonly cores: number | null;
}

/** Memory and processor, as they are looked at while the page is open, after what the user log says. */
function UsagePanel({
  job,
  runs,
  past,
}: {
  readonly job: string;
  readonly runs: boolean;
  readonly past: OneJob['memory'];
}) {
  const { data } = useLive(`usage ${job}`, (signal) => get<Usage>(`/jobs/${job}/usage`, signal), {
    on: () => false,
    ...(runs ? { everyMs: 3000 } : {}),
  });
  const [seen, setSeen] = useState<readonly (Moment & { readonly cpu: number | undefined })[]>([]);
  useEffect(() => {
    if (data?.memoryKb === undefined && data?.cpuSeconds === undefined) return;
    const at = Date.now() / 1000;
    setSeen((before) => {
      const last = before.at(-1);
      const spent = last?.cpu === undefined || data.cpuSeconds === undefined ? undefined : data.cpuSeconds - last.cpu;
      const cores = spent === undefined || !last ? null : Math.max(0, spent / (at - last.at));
      const mb = data.memoryKb === undefined ? null : data.memoryKb / 1024;
      return [...before, { at, mb, cores, cpu: data.cpuSeconds }].slice(-2000);
    });
  }, [data]);
  const all = useMemo(
    (): readonly Moment[] => [...past.map(({ at, mb }) => ({ at: at / 1000, mb, cores: null })), ...seen],
    [past, seen],
  );
  const times = useMemo(() => all.map(({ at }) => at), [all]);
  const memory = useMemo(() => [{ label: 'MB', colour: '--running', values: all.map(({ mb }) => mb) }], [all]);
  const cores = useMemo(() => [{ label: 'cores', colour: '--completed', values: all.map((one) => one.cores) }], [all]);
  const latest = all.at(-1);
  return (
    <div class="pair">
      <Panel title="Memory" id="memory">
        {all.length === 0 ? (
          <Empty>Its site has not reported any yet.</Empty>
        ) : (
          <Chart
            times={times}
            series={memory}
            height={140}
            label={`Memory over time, now ${Math.round(latest?.mb ?? 0)} MB`}
          />
        )}
      </Panel>
      <Panel title="Processor" id="processor">
        {seen.length === 0 ? (
          <Empty>Its site has not reported any yet.</Empty>
        ) : (
          <Chart
            times={times}
            series={cores}
            height={140}
            label={`Cores in use over time, now ${(latest?.cores ?? 0).toFixed(1)}`}
          />
        )}
      </Panel>
    </div>
  );
}
