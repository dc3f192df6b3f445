import { ClassAd, type Expr, literal, parseExpr } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import type { Size } from './wire.ts';

/** Parsed expressions by text: ads of thousands of jobs share most of theirs. */
const PARSED = new Map<string, Expr>();
const MOST = 20_000;

/** An ad of expression texts (old syntax); what cannot be parsed is ERROR. */
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

/** A machine's ad as it is with only so much of it free. */
export function offerAd(machine: ClassAd, free: Size): ClassAd {
  return new ClassAd()
    .chainTo(machine)
    .setExpr('Cpus', literal(free.cpus))
    .setExpr('Memory', literal(free.memoryMb))
    .setExpr('Disk', literal(free.diskKb))
    .setExpr('GPUs', literal(free.gpus));
}
