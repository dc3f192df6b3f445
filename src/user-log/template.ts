/**
 * Line templates that print and parse from one declaration. `{x}` is text, `{x!}` one word, `{x#}` an integer, `{x~}` a
 * byte count, `{x%}` CPU time in HTCondor's form (`Usr 0 00:00:00, Sys 0 00:00:00`).
 */
export interface Template {
  /** `undefined` if `fields` lacks something that the line needs. */
  print(fields: Fields): string | undefined;
  parse(line: string): Fields | undefined;
  readonly names: readonly (readonly [name: string, kind: FieldKind])[];
}

export type Fields = Readonly<Record<string, unknown>>;
export type FieldKind = '' | '!' | '#' | '~' | '%';

const CPU = 'Usr (\\d+) (\\d\\d):(\\d\\d):(\\d\\d), Sys (\\d+) (\\d\\d):(\\d\\d):(\\d\\d)';
const PATTERN: Readonly<Record<FieldKind, string>> = {
  // Text must not match the table that may follow it.
  '': '((?!Partitionable Resources :).*?)',
  '!': '(\\S+)',
  '#': '(-?\\d+)',
  '~': '(\\d+)',
  '%': `(${CPU})`,
};

export function template(source: string): Template {
  const parts = source.split(/(\{\w+[!#~%]?\})/);
  const names: [string, FieldKind][] = [];
  let pattern = '';
  for (const part of parts) {
    const field = /^\{(\w+)([!#~%]?)\}$/.exec(part);
    if (field?.[1] === undefined) {
      pattern += part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
      continue;
    }
    const kind = field[2] as FieldKind;
    names.push([field[1], kind]);
    pattern += PATTERN[kind];
  }
  const whole = new RegExp(`^${pattern}$`, 'u');
  return {
    names,
    print(fields) {
      let at = 0;
      let line = '';
      for (const part of parts) {
        if (!part.startsWith('{')) {
          line += part;
          continue;
        }
        const [name] = names[at++] ?? [''];
        const value = fields[name] as string | number | Cpu | undefined;
        if (value === undefined) return undefined;
        line +=
          typeof value === 'object'
            ? cpuText(value)
            : oneLine(String(value)).replace(/^(?=Partitionable Resources :)/, ' ');
      }
      return line;
    },
    parse(line) {
      const found = whole.exec(line);
      if (!found) return undefined;
      const fields: Record<string, unknown> = {};
      let group = 1;
      for (const [name, kind] of names) {
        const raw = found[group] ?? '';
        fields[name] = kind === '#' || kind === '~' ? Number(raw) : kind === '%' ? cpuTime(found, group) : raw;
        group += kind === '%' ? 9 : 1;
      }
      return fields;
    },
  };
}

interface Cpu {
  readonly user: number;
  readonly system: number;
}

export function cpuText(cpu: Cpu): string {
  return `Usr ${clock(cpu.user)}, Sys ${clock(cpu.system)}`;
}

function clock(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const two = (n: number) => String(n).padStart(2, '0');
  return `${Math.floor(s / 86_400)} ${two(Math.floor(s / 3600) % 24)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

function cpuTime(found: RegExpExecArray, group: number): Cpu {
  const seconds = (from: number) =>
    Number(found[from]) * 86_400 +
    Number(found[from + 1]) * 3600 +
    Number(found[from + 2]) * 60 +
    Number(found[from + 3]);
  return { user: seconds(group + 1), system: seconds(group + 5) };
}

/** Text without anything that would end its line. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/g, ' ');
}
