import { ClassAd, type Expr, literal, parseExpr } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
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

function parsed(text: string): Expr {
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
  return new ClassAd()
    .chainTo(machine)
    .setExpr('Cpus', literal(free.cpus))
    .setExpr('Memory', literal(free.memoryMb))
    .setExpr('Disk', literal(free.diskKb))
    .setExpr('GPUs', literal(free.gpus));
}
