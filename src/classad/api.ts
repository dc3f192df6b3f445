/*
 * The ClassAd language as other modules see it. Everything here is pure: time, randomness and the maps of userMap() are
 * passed in as options of an evaluation.
 */
export { ClassAd } from './ad.ts';
export {
  evalBool,
  evalInt,
  evalString,
  evaluate,
  evaluateAttr,
  leftMatchesRight,
  rightMatchesLeft,
  type Scope,
  symmetricMatch,
  tryEvaluate,
} from './evaluate.ts';
export type { Expr } from './expr.ts';
export { attrRef, binary, call, list, literal, record, ternary, unary } from './expr.ts';
export { functionNames } from './functions/table.ts';
export { fromJson, type JsonLayout, toJson } from './json.ts';
export { parseAd, parseExpr, parseOldAd, parseWholeExpr } from './parse.ts';
export { printAd, printExpr, printName, printString, printValue, type Syntax } from './printer.ts';
export { type Attributes, attributesOf } from './references.ts';
export { EvalFailed, type EvalOptions } from './state.ts';
export { withTargets } from './substitute.ts';
export { ClassAdSyntaxError } from './syntax-error.ts';
export {
  AbsTime,
  asCondition,
  ERROR,
  ErrorValue,
  isInt,
  ListValue,
  Real,
  RelTime,
  toDouble,
  type Value,
} from './values.ts';
export { fromXml, toXml, XML_FOOTER, XML_HEADER } from './xml.ts';
export { type Analysis, analyze, type Clause, explain } from './analyze.ts';
export { clausesOf } from './clauses.ts';
export { Matchmaker } from './matchmaker.ts';
export {
  groupByKind,
  type AdKind,
  type Match,
  type Matches,
  matchMany,
  significantAttributes,
} from './negotiate.ts';
export { Signatures } from './population.ts';
