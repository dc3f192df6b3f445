import { useEffect, useRef, useState } from 'preact/hooks';
import { type Acted, type ActionName, ApiError, type Choice, fieldOf, type Plan, post } from './api.ts';
import { number } from './format.ts';
import { Text, Wrong } from './parts.tsx';

export const ACTIONS: readonly (readonly [ActionName, string])[] = [
  ['hold', 'Hold'],
  ['release', 'Release'],
  ['remove', 'Remove'],
  ['edit', 'Edit'],
  ['vacate', 'Vacate'],
  ['suspend', 'Suspend'],
  ['continue', 'Continue'],
];

interface Edit {
  readonly name: string;
  readonly value: string;
}

/** Says what an action will do to these jobs, and does it when that is confirmed. */
export function ActionDialog({
  action,
  choice,
  close,
}: {
  readonly action: ActionName;
  readonly choice: Choice;
  readonly close: (done: boolean) => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [plan, setPlan] = useState<Plan>();
  const [acted, setActed] = useState<Acted>();
  const [error, setError] = useState<ApiError>();
  const [reason, setReason] = useState('');
  const [edit, setEdit] = useState<Edit>();
  const [busy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (thrown) {
      setError(thrown instanceof ApiError ? thrown : new ApiError(0, String(thrown)));
    }
    setBusy(false);
  };
  const look = (set?: Edit): Promise<void> =>
    attempt(async () => {
      setPlan(await post<Plan>('/jobs/plan', { action, choice, ...(set ? { set: { [set.name]: set.value } } : {}) }));
    });
  useEffect(() => {
    dialog.current?.showModal();
    if (action !== 'edit') void look();
  }, []);
  const name = ACTIONS.find(([one]) => one === action)?.[1] ?? action;
  const act = (): Promise<void> =>
    attempt(async () => {
      const asked = { plan: plan?.plan ?? '', ...(reason === '' ? {} : { reason }) };
      setPlan(undefined);
      setActed(await post<Acted>('/jobs/act', asked));
    });
  const withReason = ['hold', 'release', 'remove'].includes(action);
  return (
    <dialog ref={dialog} aria-labelledby="action-title" onClose={() => close(acted !== undefined)}>
      <h2 id="action-title">{name}</h2>
      <Wrong error={error} />
      {action === 'edit' && !acted && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const form = event.currentTarget;
            const set = { name: fieldOf(form, 'name'), value: fieldOf(form, 'value') };
            setEdit(set);
            void look(set);
          }}
        >
          <label>
            Attribute <input name="name" required pattern="[A-Za-z_][A-Za-z0-9_]*" placeholder="RequestMemory" />
          </label>
          <label>
            ClassAd expression <input name="value" required placeholder="2048" />
          </label>
          <button type="submit">{plan && edit ? 'Look again' : 'What will it do?'}</button>
        </form>
      )}
      {plan && (
        <>
          <p class="says">{<Text of={plan.says} />}</p>
          {plan.examples.length > 0 && plan.will > 1 && <p class="muted">For example: {plan.examples.join(', ')}</p>}
          {plan.wont.map(({ why, count }) => (
            <p class="muted" key={why}>
              Not {number(count)}: <Text of={why} />
            </p>
          ))}
          {withReason && plan.will > 0 && (
            <label>
              Reason <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
            </label>
          )}
        </>
      )}
      {acted && (
        <div role="status">
          <p>{number(acted.done)} done.</p>
          {acted.others.map(({ message, count, jobs }) => (
            <p key={message}>
              {number(count)}: <Text of={message} /> ({jobs.join(', ')})
            </p>
          ))}
        </div>
      )}
      <div class="buttons">
        {plan && plan.will > 0 && (
          <button
            type="button"
            class={action === 'remove' ? 'danger' : 'main'}
            disabled={busy}
            onClick={() => void act()}
          >
            {name} {number(plan.will)} {plan.will === 1 ? 'job' : 'jobs'}
          </button>
        )}
        <button type="button" onClick={() => dialog.current?.close()}>
          {acted ? 'Close' : 'Cancel'}
        </button>
      </div>
    </dialog>
  );
}
