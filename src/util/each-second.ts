interface Called {
  readonly call: () => void;
  /** Seconds. */
  readonly every: number;
  readonly keepsAlive: boolean;
}

const all = new Set<Called>();
let timer: NodeJS.Timeout | undefined;
let seconds = 0;

/**
 * Calls again and again, in whole seconds (`every`; default 1), together with all others of this process that are called so: it
 * wakes once for all. `keepsAlive`: the process does not end while it is to be called. Returns what ends it. No call may throw.
 */
export function eachSecond(
  call: () => void,
  { every = 1, keepsAlive = false }: { readonly every?: number; readonly keepsAlive?: boolean } = {},
): () => void {
  const called: Called = { call, every, keepsAlive };
  all.add(called);
  timer ??= setInterval(() => {
    seconds += 1;
    for (const one of all) if (seconds % one.every === 0) one.call();
  }, 1000);
  hold();
  return () => {
    all.delete(called);
    hold();
  };
}

function hold(): void {
  if (all.size === 0) {
    clearInterval(timer);
    timer = undefined;
  } else if ([...all].some(({ keepsAlive }) => keepsAlive)) timer?.ref();
  else timer?.unref();
}
