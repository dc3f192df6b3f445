import { useState } from 'preact/hooks';
import { ApiError, type Credential, get, post } from './api.ts';
import { duration, when } from './format.ts';
import { useLive, useNow } from './live.ts';
import { Bar, Empty, Grid, State, Text, Wrong } from './parts.tsx';

export function CredentialsView() {
  const { data, error, again } = useLive('credentials', (signal) => get<Credential[]>('/credentials', signal), {
    on: ({ credentials }) => credentials,
    everyMs: 30_000,
  });
  const [busy, setBusy] = useState<string>();
  const [said, setSaid] = useState('');
  const [wrong, setWrong] = useState<ApiError>();
  const now = useNow(5000);
  const renew = async (name: string): Promise<void> => {
    setBusy(name);
    setWrong(undefined);
    try {
      const { message } = await post<{ message: string }>(`/credentials/${encodeURIComponent(name)}/renew`);
      setSaid(`${name}: ${message}`);
    } catch (thrown) {
      setWrong(thrown instanceof ApiError ? thrown : new ApiError(0, String(thrown)));
    }
    setBusy(undefined);
    again();
  };
  return (
    <>
      <Wrong error={error} />
      <Wrong error={wrong} />
      <p role="status">
        <Text of={said} />
      </p>
      {data?.length === 0 && <Empty>No job and no site needs a credential.</Empty>}
      <Grid label="Credentials" heads={['Credential', 'Kind', 'State', 'Ends', 'Left', '', 'Jobs', 'Sites', '']}>
        {(data ?? []).map((one) => (
          <tr key={one.name}>
            <th scope="row">
              <Text of={one.name} />
            </th>
            <td>
              <Text of={one.what} />
            </td>
            <td>
              <State of={one.state} />
              {one.problem !== undefined && (
                <p>
                  <Text of={one.problem} />
                </p>
              )}
            </td>
            <td>{when(one.end)}</td>
            <td>{one.end === undefined ? 'no end is known' : duration(one.end - now / 1000)}</td>
            <td>
              {one.level !== undefined && (
                <Bar
                  total={100}
                  parts={[['completed', 100 * one.level]]}
                  label={`${Math.round(100 * one.level)} % of its life is left`}
                />
              )}
            </td>
            <td class="wide">
              {one.waiting} waiting, {one.there} at sites, {one.held} held
            </td>
            <td>
              <Text of={one.sites.join(', ')} />
            </td>
            <td>
              {one.renews ? (
                <button type="button" disabled={busy !== undefined} onClick={() => void renew(one.name)}>
                  {busy === one.name ? 'Renewing …' : 'Renew'}
                </button>
              ) : (
                one.type.map((line) => (
                  <code key={line}>
                    <Text of={line} />
                  </code>
                ))
              )}
            </td>
          </tr>
        ))}
      </Grid>
    </>
  );
}
