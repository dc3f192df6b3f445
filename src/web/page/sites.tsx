import { useRef, useState } from 'preact/hooks';
import { ApiError, ask, fieldOf, get, post, type Site } from './api.ts';
import { duration, number, when } from './format.ts';
import { useLive } from './live.ts';
import { Empty, Grid, State, Text, Wrong, SiteLink } from './parts.tsx';

export function SitesView() {
  const { data, error } = useLive('sites', (signal) => get<Site[]>('/sites', signal), { everyMs: 10_000 });
  const [login, setLogin] = useState<string>();
  return (
    <>
      <Wrong error={error} />
      {data?.length === 0 && <Empty>No site is configured. Add one: gryphus site add NAME HOST</Empty>}
      <Grid
        label="Sites"
        heads={[
          'Site',
          'Address',
          'Batch system',
          'Connection',
          'Since',
          'Waiting',
          'Queued',
          'Running',
          'Unknown',
          'Sending',
          'Fetching',
          'Free cores',
          'Wait, run (means)',
          'Next starts in',
          'Failed in 1 h',
          'What is known',
          '',
        ]}
      >
        {(data ?? []).map((site) => (
          <tr key={site.name}>
            <th scope="row">
              <SiteLink site={site.name} />
            </th>
            <td>
              <Text of={site.url} />
            </td>
            <td>
              <Text of={site.batch} />
            </td>
            <td>
              <State of={site.connection} />
            </td>
            <td>{when(site.since === undefined ? undefined : site.since / 1000)}</td>
            {[site.idle, site.queuedThere, site.running, site.unknown, site.sending, site.fetching].map((count, i) => (
              <td class="n" key={i}>
                {number(count)}
              </td>
            ))}
            <Measured of={site.measured} />
            <td class="wide">
              {site.message !== undefined && (
                <p>
                  <Text of={site.message} />
                </p>
              )}
              {site.learned && (
                <p>
                  It accepts {site.learned.jobs} jobs, learned {when(site.learned.at / 1000)}:{' '}
                  <Text of={site.learned.message} />
                </p>
              )}
              {site.outOfUse !== undefined && (
                <p>
                  Out of use, next try {when(site.nextTry === undefined ? undefined : site.nextTry / 1000)}:{' '}
                  <Text of={site.outOfUse} />
                </p>
              )}
            </td>
            <td>
              {site.connection === 'needs-login' && (
                <button type="button" class="main" onClick={() => setLogin(site.name)}>
                  Log in
                </button>
              )}
            </td>
          </tr>
        ))}
      </Grid>
      {login !== undefined && <Login site={login} close={() => setLogin(undefined)} />}
    </>
  );
}

/** Its cores, and what our jobs have shown about it. */
function Measured({ of }: { readonly of: Site['measured'] }) {
  const { cores, freeCores, meanWait, meanRun, expectedWait, failures = 0 } = of ?? {};
  const busy = cores === undefined ? '–' : `${freeCores === undefined ? '?' : number(freeCores)} of ${number(cores)}`;
  return (
    <>
      <td class="n">{busy}</td>
      <td class="n">
        {duration(meanWait)}, {duration(meanRun)}
      </td>
      <td class="n">{duration(expectedWait)}</td>
      <td class="n">{number(failures)}</td>
    </>
  );
}

type Message =
  | { readonly ask: string; readonly text: string; readonly echo: boolean }
  | { readonly withdrawn: string }
  | { readonly done: true }
  | { readonly error: string; readonly suggestions: readonly string[] };

/** The site's questions, one after the other. An answer is sent and forgotten. */
function Login({ site, close }: { readonly site: string; readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const gone = useRef(new AbortController());
  const [question, setQuestion] = useState<Extract<Message, { ask: string }>>();
  const [error, setError] = useState<ApiError>();
  const [done, setDone] = useState(false);
  const begun = useRef(false);
  const talk = async (): Promise<void> => {
    const { body } = await ask(`/sites/${encodeURIComponent(site)}/login`, {
      method: 'POST',
      signal: gone.current.signal,
    });
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    let held = '';
    for (;;) {
      const { done: end = true, value } = (await reader?.read()) ?? {};
      if (end) return;
      const lines = (held + (value ?? '')).split('\n');
      held = lines.pop() ?? '';
      for (const line of lines) {
        const message = JSON.parse(line) as Message;
        if ('ask' in message) setQuestion(message);
        else setQuestion(undefined);
        if ('done' in message) setDone(true);
        if ('error' in message) setError(new ApiError(400, message.error, message.suggestions));
      }
    }
  };
  const open = (element: HTMLDialogElement | null): void => {
    dialog.current = element;
    if (!element || begun.current) return;
    begun.current = true;
    element.showModal();
    talk().catch((thrown: unknown) => {
      if (!gone.current.signal.aborted) setError(thrown instanceof ApiError ? thrown : new ApiError(0, String(thrown)));
    });
  };
  const answer = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const text = fieldOf(form, 'answer');
    const asked = question?.ask ?? '';
    form.reset();
    setQuestion(undefined);
    post(`/answers/${asked}`, { text }).catch((thrown: unknown) => thrown instanceof ApiError && setError(thrown));
  };
  return (
    <dialog
      ref={open}
      aria-labelledby="login-title"
      onClose={() => {
        gone.current.abort();
        close();
      }}
    >
      <h2 id="login-title">
        Log in to <Text of={site} />
      </h2>
      <Wrong error={error} />
      {question && (
        <form onSubmit={answer} autocomplete="off">
          <label>
            <Text of={question.text} />
            {question.echo ? (
              <input key={question.ask} name="answer" type="text" autocomplete="off" ref={(input) => input?.focus()} />
            ) : (
              <input
                key={question.ask}
                name="answer"
                type="password"
                autocomplete="off"
                ref={(input) => input?.focus()}
              />
            )}
          </label>
          <button type="submit" class="main">
            Answer
          </button>
        </form>
      )}
      <p role="status">{done ? 'The connection is open.' : question || error ? '' : 'Waiting for the site …'}</p>
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          {done ? 'Close' : 'Cancel'}
        </button>
      </div>
    </dialog>
  );
}
