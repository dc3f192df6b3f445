import { useEffect, useMemo, useState } from 'preact/hooks';
import { ApiError, type Dag, get, type Picture, post, type Runs } from './api.ts';
import { drawingOf, labelOf } from './dag-layout.ts';
import { number, when } from './format.ts';
import { useLive } from './live.ts';
import { Bar, Empty, JobLink, Panel, Text, Wrong } from './parts.tsx';
import { plain } from './plain.ts';
import { RunBars } from './run-bars.tsx';

/** How often it is looked at without an event; milliseconds. */
const LOOK_MS = 2000;
/** The most telling state first. */
const ORDER = ['error', 'futile', 'submitted', 'prerun', 'postrun', 'ready', 'not_ready', 'done'] as const;
const WORDS: Readonly<Record<string, string>> = {
  error: 'failed',
  futile: 'futile',
  submitted: 'in the queue',
  prerun: 'PRE script',
  postrun: 'POST script',
  ready: 'ready',
  not_ready: 'waits',
  done: 'done',
};

export function DagView({ cluster }: { readonly cluster: string }) {
  const [around, setAround] = useState<string>();
  const [steps, setSteps] = useState(1);
  const [open, setOpen] = useState<Picture['boxes'][number]>();
  const [error, setError] = useState<ApiError>();
  // What its manager decides by itself, as after a script, is no event of the queue.
  const dag = useLive(`dag ${cluster}`, (signal) => get<Dag>(`/dags/${cluster}`, signal), { everyMs: LOOK_MS });
  const query = around === undefined ? '' : `?${new URLSearchParams({ around, steps: String(steps) }).toString()}`;
  const picture = useLive(`picture ${cluster}${query}`, (signal) =>
    get<Picture>(`/dags/${cluster}/picture${query}`, signal),
  );
  const runs = useLive(`runs ${cluster}`, (signal) => get<Runs>(`/dags/${cluster}/runs`, signal));
  const looks = JSON.stringify(dag.data?.progress);
  useEffect(() => {
    picture.again();
    runs.again();
  }, [looks]);
  if (!dag.data) return <Wrong error={dag.error} />;
  const { progress } = dag.data;
  const tell = (how: string, body: object = {}): void => {
    setError(undefined);
    post(`/dags/${cluster}/${how}`, body).then(
      dag.again,
      (thrown: unknown) => thrown instanceof ApiError && setError(thrown),
    );
  };
  const halted = progress?.status === 'DAG_STATUS_HALTED';
  const over = dag.data.exitCode !== undefined || dag.data.manager === 'gone';
  return (
    <>
      <Wrong error={error ?? dag.error ?? picture.error} />
      <div class="head-line">
        <h2>
          DAG {cluster} <Text of={dag.data.batchName} />
        </h2>
        {!over && (
          <div role="toolbar" aria-label="Actions on this DAG">
            <button type="button" disabled={halted} onClick={() => tell('halt')}>
              Halt
            </button>
            <button type="button" disabled={!halted} onClick={() => tell('resume')}>
              Resume
            </button>
            <form
              class="inline"
              onSubmit={(event) => {
                event.preventDefault();
                tell('throttle', { maxJobs: Number(new FormData(event.currentTarget).get('jobs')) });
              }}
            >
              <label>
                Nodes in the queue at most <input name="jobs" type="number" min="0" required class="short" />
              </label>
              <button type="submit">Throttle</button>
            </form>
          </div>
        )}
      </div>
      {progress ? (
        <>
          <Bar
            total={progress.total}
            label={`${progress.done} of ${progress.total} nodes are done`}
            parts={[
              ['completed', progress.done],
              ['running', progress.queued + progress.pre + progress.post],
              ['removed', progress.failed],
            ]}
          />
          <p class="muted line">
            {halted ? 'Halted. ' : ''}
            {number(progress.done)} of {number(progress.total)} nodes done, {progress.queued} in the queue,{' '}
            {progress.ready} ready, {progress.unready} waiting, {progress.failed} failed, {progress.futile} futile.
            Submitted {when(dag.data.submitted)}.
            {dag.data.exitCode === undefined ? '' : ` Ended with ${dag.data.exitCode}.`}
          </p>
        </>
      ) : (
        <Empty>{over ? 'It has ended.' : 'Its manager has not started yet.'}</Empty>
      )}
      {dag.data.continuesFrom !== undefined && (
        <p class="line">
          It continues from <Text of={dag.data.continuesFrom} />.
        </p>
      )}
      {dag.data.rescue !== undefined && (
        <p class="line">
          Submitted again, it continues from <Text of={dag.data.rescue} />.
        </p>
      )}
      <Panel
        title={around === undefined ? 'Graph' : 'Around a node'}
        id="graph"
        tools={
          around !== undefined && (
            <div role="toolbar" aria-label="Part of the graph">
              <button type="button" onClick={() => setAround(undefined)}>
                Whole DAG
              </button>
              <button type="button" onClick={() => setSteps(steps + 1)} disabled={steps >= 10}>
                Further
              </button>
              <button type="button" onClick={() => setSteps(steps - 1)} disabled={steps <= 1}>
                Nearer
              </button>
            </div>
          )
        }
      >
        {picture.data && picture.data.boxes.length > 0 ? (
          <Graph
            picture={picture.data}
            chosen={around}
            pick={(box) => (box.count === 1 ? (setOpen(undefined), setAround(box.nodes[0])) : setOpen(box))}
          />
        ) : (
          <Empty>{over ? 'Nothing of its graph remains.' : 'There is nothing to draw yet.'}</Empty>
        )}
        {picture.data && picture.data.left > 0 && (
          <p class="muted">{number(picture.data.left)} neighbours are left out.</p>
        )}
        {open && (
          <div class="unfolded">
            <p>
              <Text of={open.label} />: {number(open.count)} nodes, {saying(open.states)}. Unfold what is around one:
            </p>
            <ul>
              {open.nodes.map((node) => (
                <li key={node}>
                  <button type="button" class="as-link" onClick={() => (setOpen(undefined), setAround(node))}>
                    <Text of={node} />
                  </button>
                </li>
              ))}
              {open.count > open.nodes.length && <li>…</li>}
            </ul>
          </div>
        )}
      </Panel>
      {progress && progress.criticalPath.length > 0 && (
        <Panel title="Critical path" id="path">
          <p>
            {number(progress.criticalPath.length)} nodes, one after the other:{' '}
            <Text of={progress.criticalPath.waitsFor} />
          </p>
          <ol class="path">
            {progress.criticalPath.nodes.map(({ node }) => (
              <li key={node}>
                <button type="button" class="as-link" onClick={() => setAround(node)}>
                  <Text of={node} />
                </button>
              </li>
            ))}
          </ol>
        </Panel>
      )}
      {progress?.retries && progress.retries.made > 0 && (
        <Panel title="Retries" id="retries">
          <p>{number(progress.retries.made)} in all.</p>
          <ul>
            {progress.retries.nodes.map(({ node, made, most }) => (
              <li key={node}>
                <button type="button" class="as-link" onClick={() => setAround(node)}>
                  <Text of={node} />
                </button>
                : {number(made)} of {number(most)}
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {progress && progress.failures.length > 0 && (
        <Panel title="Failed nodes" id="failures">
          <ul>
            {progress.failures.map(({ node, error: message }) => (
              <li key={node}>
                <b>
                  <Text of={node} />
                </b>
                : <Text of={message} />
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <Panel title="When each node ran" id="runs">
        {runs.data && runs.data.length > 0 ? <RunBars runs={runs.data} /> : <Empty>No node has run yet.</Empty>}
      </Panel>
      <p class="muted">
        Its manager is job <JobLink job={`${cluster}.0`} />, in <Text of={dag.data.directory} />.
      </p>
    </>
  );
}

function saying(states: Readonly<Record<string, number>>): string {
  return ORDER.filter((state) => states[state])
    .map((state) => `${states[state]} ${WORDS[state]}`)
    .join(', ');
}

function Graph({
  picture,
  chosen,
  pick,
}: {
  readonly picture: Picture;
  readonly chosen: string | undefined;
  readonly pick: (box: Picture['boxes'][number]) => void;
}) {
  const shape = JSON.stringify([picture.boxes.map(({ label }) => label), picture.lines]);
  const drawing = useMemo(() => drawingOf(picture), [shape]);
  return (
    <div class="scroll graph" tabIndex={0} role="region" aria-label="Graph of the DAG">
      <svg
        width={drawing.width}
        height={drawing.height}
        role="group"
        aria-label={`${picture.boxes.length} boxes for ${picture.size} nodes`}
      >
        {drawing.lines.map(({ points }, i) => (
          <polyline key={i} class="edge" points={points.map(({ x, y }) => `${x},${y}`).join(' ')} />
        ))}
        {picture.boxes.map((box, i) => {
          const place = drawing.boxes[i];
          const worst = ORDER.find((state) => box.states[state]) ?? 'not_ready';
          if (!place) return null;
          const about = `${plain(box.label)}: ${saying(box.states)}`;
          return (
            <g
              key={`${box.level} ${box.label}`}
              class={`box node-${worst} ${chosen !== undefined && box.nodes[0] === chosen ? 'centre' : ''}`}
              transform={`translate(${place.x},${place.y})`}
              role="button"
              tabindex={0}
              aria-label={about}
              onClick={() => pick(box)}
              onKeyDown={(event) => (event.key === 'Enter' || event.key === ' ') && (event.preventDefault(), pick(box))}
            >
              <title>{about}</title>
              <rect width={place.width} height={place.height} rx="6" />
              <text x={place.width / 2} y={picture.grouped ? 20 : place.height / 2 + 5}>
                {plain(labelOf(box.label))}
              </text>
              {picture.grouped && (
                <text class="sub" x={place.width / 2} y={38}>
                  {box.states['done'] ?? 0} of {box.count} done
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
