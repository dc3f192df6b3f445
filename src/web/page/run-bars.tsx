import type { Runs } from './api.ts';
import { duration, when } from './format.ts';
import { useNow } from './live.ts';
import { plain } from './plain.ts';

const SHOWN = 300;
const HEIGHT = 20;
const WIDTH = 900;
const NAME = 180;

/** A bar for each job of a DAG: when it waited, and when it ran. */
export function RunBars({ runs }: { readonly runs: Runs }) {
  const now = useNow() / 1000;
  const shown = runs.slice(0, SHOWN);
  const from = Math.min(...shown.map(({ submitted }) => submitted));
  const to = Math.max(from + 1, ...shown.map(({ ended }) => ended ?? now));
  const x = (at: number) => NAME + ((WIDTH - NAME - 10) * (at - from)) / (to - from);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="When each node ran">
      {runs.length > SHOWN && (
        <p class="muted">
          The first {SHOWN} of {runs.length} jobs.
        </p>
      )}
      <p class="muted">
        {when(from)} to {when(to)}, {duration(to - from)}
      </p>
      <ul class="bars">
        {shown.map(({ node, job, submitted, started, ended, shows }) => {
          const end = ended ?? now;
          const name = node === '' ? job : node;
          const took = started === undefined ? 'has not started' : `ran ${duration(end - started)}`;
          const about = `${plain(name)}: waited ${duration((started ?? end) - submitted)}, ${took}`;
          return (
            <li key={job}>
              <a href={`#/job/${job}`} aria-label={about}>
                <svg width={WIDTH} height={HEIGHT} aria-hidden="true">
                  <text x="0" y="14">
                    {plain(name).slice(0, 24)}
                  </text>
                  <rect
                    class="waited"
                    x={x(submitted)}
                    y="8"
                    width={Math.max(1, x(started ?? end) - x(submitted))}
                    height="4"
                  />
                  {started !== undefined && (
                    <rect
                      class={`fill-${shows}`}
                      x={x(started)}
                      y="3"
                      width={Math.max(2, x(end) - x(started))}
                      height="14"
                      rx="2"
                    />
                  )}
                </svg>
              </a>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
