import { useEffect, useRef, useState } from 'preact/hooks';
import { ActionDialog, ACTIONS } from './action.tsx';
import type { ActionName, Choice } from './api.ts';
import { BatchTable } from './batch-table.tsx';
import { JobTable } from './job-table.tsx';

type Tab = 'jobs' | 'batches' | 'history';
const TABS: readonly (readonly [Tab, string])[] = [
  ['jobs', 'Jobs'],
  ['batches', 'Batches'],
  ['history', 'Ended'],
];

/** How long typing pauses before the box is asked; milliseconds. */
const TYPING_MS = 250;

export function JobsView({ box: given }: { readonly box: string }) {
  const [tab, setTab] = useState<Tab>('jobs');
  const [text, setText] = useState(given);
  const [box, setBox] = useState(given);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [all, setAll] = useState(false);
  const [action, setAction] = useState<ActionName>();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const timer = setTimeout(() => {
      setBox(text);
      setAll(false);
      // So that Back from a job comes to the same jobs, as does a bookmark.
      history.replaceState(history.state, '', text === '' ? '#/jobs' : `#/jobs/${encodeURIComponent(text)}`);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    const key = (event: KeyboardEvent): void => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      if (event.key !== '/' || typing) return;
      event.preventDefault();
      input.current?.focus();
    };
    window.addEventListener('keydown', key);
    return () => window.removeEventListener('keydown', key);
  }, []);
  useEffect(() => {
    // The link to all jobs, while the address was that of some.
    const change = (): void => {
      if (location.hash === '#/jobs') setText('');
    };
    window.addEventListener('hashchange', change);
    return () => window.removeEventListener('hashchange', change);
  }, []);
  const any = all || chosen.size > 0;
  const choice: Choice = all ? { box } : { jobs: [...chosen] };
  const show = (of: string): void => {
    setText(of);
    setTab('jobs');
  };
  return (
    <>
      <div class="tools">
        <div role="tablist" aria-label="Which jobs">
          {TABS.map(([name, words]) => (
            <button
              key={name}
              id={`tab-${name}`}
              type="button"
              role="tab"
              aria-selected={tab === name}
              aria-controls="tab-panel"
              onClick={() => setTab(name)}
            >
              {words}
            </button>
          ))}
        </div>
        {tab !== 'batches' && (
          <input
            ref={input}
            type="search"
            aria-label="Words, or a ClassAd constraint"
            aria-describedby="box-error"
            placeholder="words, site:c1, or a constraint: RequestMemory > 2048"
            title="Press / to type here"
            value={text}
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
      </div>
      {tab === 'jobs' && (
        <div class="tools" role="toolbar" aria-label="Actions on the selected jobs">
          <span aria-live="polite" class="chosen">
            {all ? 'All that fit the box' : chosen.size === 0 ? 'None selected' : `${chosen.size} selected`}
          </span>
          {ACTIONS.map(([name, words]) => (
            <button key={name} type="button" disabled={!any} onClick={() => setAction(name)}>
              {words}
            </button>
          ))}
        </div>
      )}
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab}`}>
        {tab === 'batches' ? (
          <BatchTable show={show} />
        ) : (
          <JobTable
            key={tab}
            where={tab === 'history' ? 'history' : 'queue'}
            box={box}
            chosen={chosen}
            choose={setChosen}
            all={all}
            chooseAll={setAll}
          />
        )}
      </div>
      {action && (
        <ActionDialog
          action={action}
          choice={choice}
          close={(done) => {
            setAction(undefined);
            if (!done) return;
            setChosen(new Set());
            setAll(false);
          }}
        />
      )}
    </>
  );
}
