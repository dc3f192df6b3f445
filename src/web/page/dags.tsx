import { type Dag, get } from './api.ts';
import { number, when } from './format.ts';
import { useLive } from './live.ts';
import { Bar, Empty, Grid, Text, Wrong } from './parts.tsx';

export function DagsView() {
  const { data, error } = useLive('dags', (signal) => get<Dag[]>('/dags', signal), { everyMs: 10_000 });
  return (
    <>
      <Wrong error={error} />
      {data?.length === 0 ? (
        <Empty>No DAG is in the queue. Submit one: gryphus dag submit FILE.dag</Empty>
      ) : (
        <Grid
          label="DAGs"
          heads={['DAG', 'Batch', 'Submitted', 'Progress', 'Done', 'Queued', 'Failed', 'Nodes', 'State']}
        >
          {(data ?? []).map(({ cluster, batchName, submitted, progress, manager }) => (
            <tr key={cluster}>
              <th scope="row">
                <a href={`#/dag/${cluster}`}>{cluster}</a>
              </th>
              <td>
                <Text of={batchName} />
              </td>
              <td>{when(submitted)}</td>
              <td>
                <Bar
                  total={progress?.total ?? 0}
                  label={`${progress?.done ?? 0} of ${progress?.total ?? 0} nodes are done`}
                  parts={[
                    ['completed', progress?.done ?? 0],
                    ['running', progress?.queued ?? 0],
                    ['removed', progress?.failed ?? 0],
                  ]}
                />
              </td>
              {[progress?.done, progress?.queued, progress?.failed, progress?.total].map((count, i) => (
                <td class="n" key={i}>
                  {count === undefined ? '–' : number(count)}
                </td>
              ))}
              <td>{progress?.status === 'DAG_STATUS_HALTED' ? 'halted' : manager}</td>
            </tr>
          ))}
        </Grid>
      )}
    </>
  );
}
