import { literal, type ClassAd, Real } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import type { MachineLoad } from './idle/load.ts';

/** What changes all the time on a machine. */
export interface MachineNow {
  /** Unix seconds. */
  readonly now: number;
  readonly keyboard: number | undefined;
  readonly console: number | undefined;
  readonly load: MachineLoad;
  /** How long CpuBusy has been true, in seconds. */
  readonly cpuBusyTime: number;
  /** `undefined`: it has no battery. */
  readonly onBattery: boolean | undefined;
  readonly state: string;
  readonly activity: string;
  readonly enteredState: number;
  readonly enteredActivity: number;
}

type Value = number | Real | string | boolean | undefined;

function valuesOf(at: MachineNow): Readonly<Record<string, Value>> {
  const date = new Date(at.now * 1000);
  const whole = (seconds: number | undefined) => (seconds === undefined ? undefined : Math.floor(seconds));
  const load = (value: number) => new Real(Math.round(value * 100) / 100);
  return {
    MyCurrentTime: Math.floor(at.now),
    KeyboardIdle: whole(at.keyboard),
    ConsoleIdle: whole(at.console),
    LoadAvg: load(at.load.total),
    TotalLoadAvg: load(at.load.total),
    CondorLoadAvg: load(at.load.own),
    TotalCondorLoadAvg: load(at.load.own),
    CpuBusyTime: Math.floor(at.cpuBusyTime),
    OnBattery: at.onBattery,
    ClockMin: date.getHours() * 60 + date.getMinutes(),
    ClockDay: date.getDay(),
    State: at.state,
    Activity: at.activity,
    EnteredCurrentState: Math.floor(at.enteredState),
    EnteredCurrentActivity: Math.floor(at.enteredActivity),
  };
}

/** Of a machine of which nothing is known yet. */
export const NOTHING: MachineNow = {
  now: 0,
  keyboard: undefined,
  console: undefined,
  load: { total: 0, own: 0 },
  cpuBusyTime: 0,
  onBattery: undefined,
  state: '',
  activity: '',
  enteredState: 0,
  enteredActivity: 0,
};

/** Their names in lower case. */
export const CHANGING: ReadonlySet<string> = new Set(Object.keys(valuesOf(NOTHING)).map((name) => name.toLowerCase()));

/** Sets them in an ad, those that are not known to undefined, so that no job can define them. */
export function setNow(ad: ClassAd, at: MachineNow): ClassAd {
  for (const [name, value] of Object.entries(valuesOf(at))) ad.setExpr(name, literal(value));
  return ad;
}

/** As texts for the machine's ad. */
export function nowTexts(at: MachineNow): AttrTexts {
  return Object.fromEntries(
    Object.entries(valuesOf(at)).map(([name, value]) => {
      if (value === undefined) return [name, null];
      if (value instanceof Real) return [name, value.value.toFixed(2)];
      return [name, typeof value === 'string' ? quoted(value) : String(value)];
    }),
  );
}
