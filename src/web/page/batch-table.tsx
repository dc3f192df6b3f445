import { type Batch, type Batches, get } from './api.ts';
import { number, when } from './format.ts';
import { useLive } from './live.ts';
import { Bar, Empty, Grid, Text, Wrong } from './parts.tsx';

const MOST = 500;

export function BatchTable({ show }: { readonly show: (box: string) => void }) {
  const { data, error } = useLive('batches', (signal) => get<Batches>(`/batches?limit=${MOST}`, signal));
  if (data?.all === 0) return <Empty>No job is in the queue. Those that have ended are under Ended.</Empty>;
  return (
    <>
      <Wrong error={error} />
      <Grid
        label="Batches"
        heads={['Batch', 'Owner', 'Submitted', 'Progress', 'Done', 'Running', 'Idle', 'Held', 'Total', 'Jobs']}
      >
        {(data?.batches ?? []).map((batch) => (
          <tr key={`${batch.owner}\n${batch.name}`}>
            <th scope="row">
              {batch.dag === undefined ? (
                <button type="button" class="as-link" onClick={() => show(boxOf(batch))}>
                  <Text of={batch.name} most={120} />
                </button>
              ) : (
                <a href={`#/dag/${batch.dag}`}>
                  <Text of={batch.name} most={120} />
                </a>
              )}
            </th>
            <td>
              <Text of={batch.owner} />
            </td>
            <td>{when(batch.submitted)}</td>
            <td>
              <Bar
                label={`${batch.done} of ${batch.total} done`}
                total={batch.total}
                parts={[
                  ['completed', batch.done],
                  ['running', batch.running],
                  ['held', batch.held],
                ]}
              />
            </td>
            {[batch.done, batch.running, batch.idle, batch.held, batch.total].map((count, i) => (
              <td class="n" key={i}>
                {number(count)}
              </td>
            ))}
            <td>
              <button type="button" class="as-link" onClick={() => show(boxOf(batch))}>
                {batch.first === batch.last ? batch.first : `${batch.first} … ${batch.last}`}
              </button>
            </td>
          </tr>
        ))}
      </Grid>
      {data && data.all > MOST && (
        <p class="muted">
          The newest {MOST} of {number(data.all)} batches.
        </p>
      )}
    </>
  );
}

function boxOf({ clusters, first }: Batch): string {
  const cluster = first.split('.')[0] ?? '';
  if (clusters.length <= 1) return `cluster:${cluster}`;
  const least = Math.min(...clusters);
  const most = Math.max(...clusters);
  return `ClusterId >= ${least} && ClusterId <= ${most}`;
}
