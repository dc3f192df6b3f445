import { get, type Pool } from './api.ts';
import { bytes, duration, number, when } from './format.ts';
import { useLive, useNow } from './live.ts';
import { Empty, Grid, JobLink, Panel, Text, Wrong } from './parts.tsx';

const MOST = 2000;

export function PoolView() {
  const { data, error } = useLive('pool', (signal) => get<Pool>('/pool', signal), { everyMs: 3000 });
  const now = useNow();
  if (!data) return <Wrong error={error} />;
  const { slots, owners, pilots, used, failures } = data;
  return (
    <>
      <Wrong error={error} />
      <Panel title="Slots" id="slots">
        {slots.length === 0 ? (
          <Empty>
            The pool is not running: it starts with the first job that needs it. More machines: gryphus glidein start
            SITE
          </Empty>
        ) : (
          <>
            <Map slots={slots} />
            <Grid
              label="Slots"
              heads={['Slot', 'Site', 'State', 'Activity', 'For', 'Cores', 'Memory', 'GPUs', 'Load', 'Job', 'User']}
            >
              {slots.slice(0, MOST).map((slot) => (
                <tr key={slot.name} class={slot.whole ? 'whole' : ''}>
                  <th scope="row">
                    <Text of={slot.name} />
                  </th>
                  <td>
                    <Text of={slot.site} />
                  </td>
                  <td>{slot.state}</td>
                  <td>{slot.activity}</td>
                  <td>{duration(now / 1000 - slot.since)}</td>
                  <td class="n">{slot.cpus}</td>
                  <td class="n">{bytes(slot.memory * 2 ** 20)}</td>
                  <td class="n">{slot.gpus}</td>
                  <td class="n">{slot.load.toFixed(2)}</td>
                  <td>{/^\d+\.\d+$/.test(slot.job) ? <JobLink job={slot.job} /> : <Text of={slot.job} />}</td>
                  <td>
                    <Text of={slot.user} />
                  </td>
                </tr>
              ))}
            </Grid>
          </>
        )}
      </Panel>
      <Panel title="Pilots" id="pilots">
        {pilots.length === 0 ? (
          <Empty>No pilot is on its way.</Empty>
        ) : (
          <Grid label="Pilots" heads={['Pilot', 'Site', 'State', 'Busy cores', 'Age', 'Time left', 'Host', '']}>
            {pilots.map((pilot) => (
              <tr key={pilot.job}>
                <th scope="row">
                  <JobLink job={pilot.job} />
                </th>
                <td>
                  <Text of={pilot.site} />
                </td>
                <td>{pilot.is}</td>
                <td class="n">
                  {pilot.busy} of {pilot.cores}
                </td>
                <td>{duration(pilot.age)}</td>
                <td>{duration(pilot.left)}</td>
                <td>
                  <Text of={pilot.host ?? ''} />
                </td>
                <td>
                  <Text of={pilot.message ?? ''} />
                </td>
              </tr>
            ))}
          </Grid>
        )}
        {failures.map(({ site, at, message }) => (
          <p key={`${site} ${at}`}>
            {when(at)} <Text of={`${site}: ${message}`} />
          </p>
        ))}
      </Panel>
      <Panel title="Owners" id="owners">
        {owners.length === 0 ? (
          <Empty>Nobody has used the pool.</Empty>
        ) : (
          <Grid
            label="Owners"
            heads={['Owner', 'Priority (smaller is next)', 'Real priority', 'Factor', 'Cores in use']}
          >
            {owners.map(({ owner, priority, realPriority, factor, inUse }) => (
              <tr key={owner}>
                <th scope="row">
                  <Text of={owner} />
                </th>
                <td class="n">{priority.toFixed(2)}</td>
                <td class="n">{realPriority.toFixed(2)}</td>
                <td class="n">{factor}</td>
                <td class="n">{number(inUse)}</td>
              </tr>
            ))}
          </Grid>
        )}
      </Panel>
      <Panel title={`Used since ${used.from}`} id="used">
        {used.owners.length === 0 ? (
          <Empty>No job has ended.</Empty>
        ) : (
          <Grid
            label="Used"
            heads={['Owner', 'Jobs', 'Core hours', 'Processor hours', 'Waiting for each hour of run time', 'Leverage']}
          >
            {used.owners.map(({ owner, jobs, capacityHours, cpuHours, waitRatio, leverage }) => (
              <tr key={owner}>
                <th scope="row">
                  <Text of={owner} />
                </th>
                <td class="n">{number(jobs)}</td>
                <td class="n">{capacityHours.toFixed(2)}</td>
                <td class="n">{cpuHours.toFixed(2)}</td>
                <td class="n">{waitRatio === undefined ? '–' : `${waitRatio.toFixed(2)} h`}</td>
                <td class="n">{leverage === undefined ? '–' : number(Math.round(leverage))}</td>
              </tr>
            ))}
          </Grid>
        )}
        <p class="muted">
          The leverage: core seconds of jobs for each second of processor time that our daemons spent at home.
        </p>
      </Panel>
    </>
  );
}

/** One square for each slot. */
function Map({ slots }: { readonly slots: Pool['slots'] }) {
  const claimed = slots.filter(({ state }) => state === 'Claimed').length;
  return (
    <div class="map" role="img" aria-label={`${claimed} of ${slots.length} slots are claimed`}>
      {slots.slice(0, MOST).map(({ name, state, activity }) => (
        <i
          key={name}
          class={`slot is-${state.toLowerCase()} is-${activity.toLowerCase()}`}
          title={`${name}: ${state}, ${activity}`}
        />
      ))}
    </div>
  );
}
