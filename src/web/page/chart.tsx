import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { when } from './format.ts';

export interface Series {
  readonly label: string;
  /** A custom property of the style sheet. */
  readonly colour: string;
  readonly dash?: number[];
  readonly values: readonly (number | null)[];
}

/** Lines over time. `times`: Unix seconds. What it shows is said in `label` for those who do not see it. */
export function Chart({
  times,
  series,
  label,
  height = 180,
}: {
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly label: string;
  readonly height?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const names = series.map((one) => one.label).join();
  useEffect(() => {
    const { current } = place;
    if (!current) return undefined;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
    const options: uPlot.Options = {
      width: Math.max(200, current.clientWidth),
      height,
      cursor: { y: false },
      legend: { live: true },
      axes: [
        { ...axis, space: 90, values: (_u, times) => times.map(when) },
        { ...axis, size: 60 },
      ],
      scales: { y: { range: (_u, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] } },
      series: [
        { label: 'time', value: (_u, time) => (time === null ? '–' : when(time)) },
        ...series.map((one) => ({
          label: one.label,
          stroke: colour(one.colour),
          width: 2,
          ...(one.dash ? { dash: one.dash } : {}),
          points: { show: false },
        })),
      ],
    };
    plot.current = new uPlot(options, dataOf(times, series), current);
    const resize = new ResizeObserver(() =>
      plot.current?.setSize({ width: Math.max(200, current.clientWidth), height }),
    );
    resize.observe(current);
    return () => {
      resize.disconnect();
      plot.current?.destroy();
    };
  }, [names, height]);
  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series]);
  return <div class="chart" ref={place} role="img" aria-label={label} />;
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [[...times], ...series.map(({ values }) => [...values])];
}
