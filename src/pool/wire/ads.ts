import { ClassAd, type Expr, literal, parseExpr, Real } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted, readString } from '../../job/values.ts';
import type { Size } from './wire.ts';

/** Parsed expressions, by text: the ads of thousands of jobs share most of theirs. */
const PARSED = new Map<string, Expr>();
const MOST = 20_000;

/** An ad built from expression texts (old syntax); those that cannot be parsed become ERROR. */
export function adFrom(texts: AttrTexts): ClassAd {
  const ad = new ClassAd();
  for (const [name, text] of Object.entries(texts)) if (text !== null) ad.setExpr(name, parsed(text));
  return ad;
}

/** Of which each is another: they would soon put all expressions out. */
const NUMBER = /^(0|[1-9]\d{0,14})(\.\d{1,15})?$/;

function parsed(text: string): Expr {
  if (NUMBER.test(text)) return literal(text.includes('.') ? new Real(Number(text)) : Number(text));
  const known = PARSED.get(text);
  if (known) return known;
  let expr: Expr;
  try {
    expr = parseExpr(text, 'old');
  } catch {
    expr = parseExpr('error', 'old');
  }
  if (PARSED.size >= MOST) PARSED.clear();
  PARSED.set(text, expr);
  return expr;
}

/** The machine's ad with its resources reduced to what is free. */
export function offerAd(machine: ClassAd, free: Size): ClassAd {
  const ad = new ClassAd()
    .chainTo(machine)
    .setExpr('Cpus', literal(free.cpus))
    .setExpr('Memory', literal(free.memoryMb))
    .setExpr('Disk', literal(free.diskKb))
    .setExpr('GPUs', literal(free.gpus));
  for (const [name, much] of Object.entries(free.others ?? {})) ad.setExpr(name, literal(numeric(much)));
  return ad;
}

/** The attributes that say a size, each under the name that `texts` has for it. */
export function sizeTexts(texts: AttrTexts, size: Size): AttrTexts {
  // If a machine's size was reduced, more of it may be claimed than it has.
  const said = (much: number) => String(Math.max(0, much));
  const named = (readString({ get: (name) => texts[name] ?? undefined }, RESOURCES) ?? '').split(' ');
  return {
    Cpus: said(size.cpus),
    Memory: said(size.memoryMb),
    Disk: said(size.diskKb),
    GPUs: said(size.gpus),
    ...Object.fromEntries(
      named
        .filter((name) => name !== '' && !STANDARD.has(name))
        .map((name) => [name, said(size.others?.[name.toLowerCase()] ?? 0)]),
    ),
  };
}

/** HTCondor's list of the resources that a machine has. */
export const RESOURCES = 'MachineResources';
const STANDARD: ReadonlySet<string> = new Set(['Cpus', 'Memory', 'Disk', 'GPUs']);

/** What a machine advertises of its resources by name, HTCondor's MACHINE_RESOURCE_name. */
export function resourceTexts(resources: Readonly<Record<string, number>> = {}): AttrTexts {
  const all = Object.entries(resources);
  if (all.length === 0) return {};
  return {
    [RESOURCES]: quoted([...STANDARD, ...all.map(([name]) => name)].join(' ')),
    ...Object.fromEntries(
      all.flatMap(([name, amount]) =>
        ['', 'Total', 'Detected'].map((prefix) => [`${prefix}${name}`, String(amount)] as const),
      ),
    ),
  };
}

/** The resources of the user's choice that a job requests, in lower case. */
export function requestedOthers(ad: AttrTexts): Pick<Size, 'others'> {
  const others: Record<string, number> = {};
  for (const name in ad) {
    if (!name.startsWith('Request') || STANDARD.has(name.slice('Request'.length))) continue;
    const amount = Number(ad[name] ?? 'x');
    if (amount > 0 && Number.isFinite(amount)) others[name.slice('Request'.length).toLowerCase()] = amount;
  }
  return Object.keys(others).length === 0 ? {} : { others };
}

function numeric(much: number): number | Real {
  return Number.isInteger(much) ? much : new Real(much);
}
