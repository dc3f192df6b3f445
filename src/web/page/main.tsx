import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, type Session, takeKey } from './api.ts';
import { CredentialsView } from './credentials.tsx';
import { DagView } from './dag.tsx';
import { DagsView } from './dags.tsx';
import { EventsView } from './events.tsx';
import { setZone } from './format.ts';
import { JobView } from './job.tsx';
import { JobsView } from './jobs.tsx';
import { followStream, useLink, useLive } from './live.ts';
import { OverviewView } from './overview.tsx';
import { Text } from './parts.tsx';
import { PoolView } from './pool.tsx';
import { SitesView } from './sites.tsx';

const VIEWS = [
  ['', 'Overview'],
  ['jobs', 'Jobs'],
  ['dags', 'DAGs'],
  ['sites', 'Sites'],
  ['pool', 'Pool'],
  ['credentials', 'Credentials'],
  ['events', 'Events'],
] as const;

const LINKS = {
  connecting: 'Connecting …',
  live: 'Live',
  away: 'The server is away; this page goes on when it is back.',
  refused: 'Not logged in',
} as const;

/** An address that somebody typed or made up is taken as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function useRoute(): readonly string[] {
  const parse = () => location.hash.replace(/^#\/?/, '').split('?')[0]?.split('/').map(decoded) ?? [''];
  const [route, setRoute] = useState(parse);
  useEffect(() => {
    const change = () => setRoute(parse());
    window.addEventListener('hashchange', change);
    // The address may have changed since the first picture was made.
    change();
    return () => window.removeEventListener('hashchange', change);
  }, []);
  return route;
}

function App() {
  const [view = '', name = ''] = useRoute();
  const link = useLink();
  const main = useRef<HTMLElement>(null);
  const [own, setOwn] = useState(localStorage.getItem('gryphus-zone') !== 'agent');
  const { data: session } = useLive('session', (signal) => get<Session>('/session', signal), { on: () => false });
  setZone(own ? undefined : session?.zone);
  const place = { job: 'jobs', dag: 'dags' }[view] ?? view;
  const title = name === '' ? (VIEWS.find(([path]) => path === place)?.[1] ?? 'Gryphus') : name;
  useEffect(() => {
    document.title = `${title} – Gryphus`;
    main.current?.focus({ preventScroll: true });
  }, [view, name]);
  const turn = (): void => {
    localStorage.setItem('gryphus-zone', own ? 'agent' : 'own');
    setOwn(!own);
  };
  if (link === 'refused') return <Refused />;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <header class="top">
        <a class="name" href="#/">
          Gryphus
        </a>
        <nav aria-label="Views">
          {VIEWS.map(([path, words]) => (
            <a key={path} href={`#/${path}`} aria-current={place === path ? 'page' : undefined}>
              {words}
            </a>
          ))}
        </nav>
        <span class={`link is-${link}`} role="status">
          {LINKS[link]}
        </span>
        {session && (
          <span class="who">
            <Text of={`${session.owner}@${session.machine}`} />
          </span>
        )}
        <button type="button" class="quiet" aria-pressed={!own} onClick={turn} title={session?.zone ?? ''}>
          {own ? 'Your time' : `Time of ${session?.machine ?? 'the agent'}`}
        </button>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <h1 class="hidden">{title}</h1>
        <View key={`${view}/${name}/${own}`} view={view} name={name} />
      </main>
    </>
  );
}

function View({ view, name }: { readonly view: string; readonly name: string }) {
  switch (view) {
    case 'jobs':
      return <JobsView box={name} />;
    case 'job':
      return <JobView job={name} />;
    case 'dags':
      return <DagsView />;
    case 'dag':
      return <DagView cluster={name} />;
    case 'sites':
      return <SitesView />;
    case 'pool':
      return <PoolView />;
    case 'credentials':
      return <CredentialsView />;
    case 'events':
      return <EventsView />;
    default:
      return <OverviewView />;
  }
}

function Refused() {
  return (
    <main class="alone">
      <h1>Gryphus</h1>
      <p>This browser is not logged in. In a terminal, type:</p>
      <pre>gryphus web</pre>
      <p>and open the address that it prints. Each address opens the page once.</p>
    </main>
  );
}

void takeKey().then(() => {
  void followStream();
  const place = document.getElementById('app');
  if (place) render(<App />, place);
});
